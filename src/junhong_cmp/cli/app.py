"""The ``junhong`` command: picks the command asked for and imports only that one."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Final

import typer
from typer._click.exceptions import NoArgsIsHelpError

from junhong_cmp import logs
from junhong_cmp.cli.complaints import complaint
from junhong_cmp.cli.signals import StopSignals
from junhong_cmp.cli.usage import ChineseGroup
from junhong_cmp.errors import JunhongError
from junhong_cmp.worker.version import program_version

# In the order `junhong --help` shows them. Each module has `register(app)`.
COMMANDS: Final = {
    "up": "junhong_cmp.cli.up",
    "worker": "junhong_cmp.cli.worker",
    "migrate": "junhong_cmp.cli.migrate",
    "status": "junhong_cmp.cli.status",
    "simulate-gateway": "junhong_cmp.cli.simulate_gateway",
    "config": "junhong_cmp.cli.config",
    "import": "junhong_cmp.cli.import_cards",
    "card": "junhong_cmp.cli.card",
    "account": "junhong_cmp.cli.account",
    "plan": "junhong_cmp.cli.plan",
    "pool": "junhong_cmp.cli.pool",
    "queue": "junhong_cmp.cli.queue",
    "task": "junhong_cmp.cli.task",
    "polling": "junhong_cmp.cli.polling",
}
# These close what they opened and answer to signals themselves; all others are ended the usual way.
STOPS_BY_ITSELF: Final = frozenset({"worker", "up"})
INTERRUPTED: Final = 130  # typer makes this of a Ctrl-C that a command did not answer itself
VERSION_OPTION: Final = "--version"


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"junhong {program_version()}")
        raise typer.Exit


WantsVersion = Annotated[
    bool,
    typer.Option(
        VERSION_OPTION, help="显示名称与版本并退出", show_default=False, is_eager=True, callback=_tell_version
    ),
]


def run(signals: StopSignals, arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code, having told the user of an error in one sentence."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    app = build_app(given, signals)
    try:
        code = app(given, prog_name="junhong", standalone_mode=False)
    except NoArgsIsHelpError as help_wanted:
        typer.echo(help_wanted.format_message(), err=True)
        return int(help_wanted.exit_code)
    except typer.TyperException as error:
        typer.echo(complaint(error), err=True)
        return int(error.exit_code)
    except JunhongError as error:
        typer.echo(f"错误：{error}", err=True)
        return int(error.exit_code)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    if code == INTERRUPTED:
        typer.echo("已中断", err=True)
    return code if isinstance(code, int) else 0


def build_app(arguments: Sequence[str], signals: StopSignals) -> typer.Typer:
    """Build the command line with the command asked for, or with all of them when none is named."""
    app = typer.Typer(
        cls=ChineseGroup,
        help="物联网卡管理平台的后台任务集群：任务队列、卡轮询、卡导入。",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def prepare(ctx: typer.Context, *, wants_version: WantsVersion = False) -> None:  # noqa: ARG001 - eager
        ctx.obj = signals
        if ctx.invoked_subcommand not in STOPS_BY_ITSELF:
            signals.restore()
        logs.configure(level=logs.LogLevel.WARNING)  # until a command knows better; never standard output

    if list(arguments) == [VERSION_OPTION]:
        return app  # told without importing a command
    asked = next((argument for argument in arguments if argument in COMMANDS), None)
    for name, module in COMMANDS.items():
        if asked in (None, name):
            import_module(module).register(app)
    return app
