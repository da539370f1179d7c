"""``junhong import``: hand a card file in, watch it being imported, stop it, and say what became of it."""

from pathlib import Path
from typing import Annotated, Final

import typer
from typer._click import Command, Context, HelpFormatter  # typer keeps the types of its own methods here

from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.output_file import refuse_unwritable
from junhong_cmp.cli.settings import Service, load_settings
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup

_DEFAULT: Final = "file"
_HELP: Final = ("--help",)

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="卡清单：CSV（UTF-8、GB18030 或带 BOM 的 UTF-16）、XLSX 或 XLS"),
]
Account = Annotated[str, typer.Option("--account", "-a", metavar="CODE", help="导入到哪个运营商账号（编码）")]
Sheet = Annotated[
    str, typer.Option("--sheet", metavar="名称", help="工作簿中的工作表；不给则取第一个有 ICCID 表头的")
]
Watch = Annotated[
    bool | None,
    typer.Option(
        "--watch/--no-watch",
        "--wait/--no-wait",
        help="显示进度直至结束（默认；--watch 在管道中也逐行显示），或只交付任务",
        show_default=False,
    ),
]
ResultCopy = Annotated[
    Path | None, typer.Option("--result", metavar="文件", help="把结果文件另存到此路径", show_default=False)
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="条数", min=1, max=1000, help="最多几条")]
ImportId = Annotated[int, typer.Argument(metavar="编号", min=1, help="导入编号")]


class ImportGroup(ChineseGroup):
    """An import group takes a file right behind its name; a file named like a command needs ``./``."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Show the command that goes unnamed first: it is what the group is for."""
        unnamed = self.commands[_DEFAULT]
        unnamed.format_help(Context(unnamed, info_name="", parent=ctx), formatter)
        formatter.write("\n")
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Take what is no command for the arguments of the one that takes a file, which goes unnamed."""
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", self.commands[_DEFAULT], args

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Leave options in front of the file to its command: the group has none but ``--help``."""
        if args and args[0] not in self.commands and args[0] not in _HELP:
            ctx.allow_interspersed_args = False
            args = ["--", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ImportGroup, no_args_is_help=True)
    for name, explanation, command in (
        (_DEFAULT, "导入卡清单文件，并显示进度与结果；file 一词可省略", import_cards),
        ("watch", "显示一次导入的进度与结果", watch_import),
        ("cancel", "取消导入：等待中的立即取消，进行中的在当前一批后停止；已导入的卡保留", cancel_import),
        ("ls", "列出最近的导入", list_imports),
    ):
        group.command(name, cls=ChineseCommand, help=explanation)(command)
    app.add_typer(group, name="import", help="导入卡清单文件；查看、取消导入")


def import_cards(
    *,
    file: File,
    account: Account,
    sheet: Sheet = "",
    watch: Watch = None,
    result: ResultCopy = None,
    as_json: AsJson = False,
    config_file: ConfigFile = None,
    redis_url: RedisUrl = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Import FILE for the account CODE; a worker does the work, this command watches."""
    flags = {"config": config_file, "redis.url": redis_url, "postgres.dsn": postgres_dsn}
    settings = load_settings(flags, demands=_STORAGE)
    if result is not None:
        refuse_unwritable(result, "--result")
    from junhong_cmp.cli.import_run import (  # noqa: PLC0415 - a wrong configuration must not wait for it
        ImportOrder,
        run_import,
    )

    order = ImportOrder(
        file=file, account_code=account, sheet=sheet, watch=watch, result_copy=result, as_json=as_json
    )
    # Not typer.Exit: its 130 is taken for a Ctrl-C that nobody answered.
    raise SystemExit(run_import(settings, order))


def watch_import(
    import_id: ImportId,
    *,
    result: ResultCopy = None,
    as_json: AsJson = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Watch an import until it is final."""
    flags = {"config": config_file, "postgres.dsn": postgres_dsn}
    demands = None if result is None else _STORAGE
    settings = load_settings(flags, without=Service.REDIS, demands=demands)
    if result is not None:
        refuse_unwritable(result, "--result")
    from junhong_cmp.cli.import_desk import run_watch  # noqa: PLC0415 - as above

    raise SystemExit(run_watch(settings, import_id, result_copy=result, as_json=as_json))


def cancel_import(
    import_id: ImportId, config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None
) -> None:
    """Cancel an import that is not final."""
    settings = load_settings({"config": config_file, "postgres.dsn": postgres_dsn}, without=Service.REDIS)
    from junhong_cmp.cli.import_desk import run_cancel  # noqa: PLC0415 - as above

    raise SystemExit(run_cancel(settings, import_id))


def list_imports(
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="条数", min=1, max=1000, help="最多几条")
    ] = 20,
    as_json: AsJson = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Print the latest imports, the newest first."""
    settings = load_settings({"config": config_file, "postgres.dsn": postgres_dsn}, without=Service.REDIS)
    from junhong_cmp.cli.import_desk import run_list  # noqa: PLC0415 - as above

    run_list(settings, limit, as_json=as_json)


def _unshared(url: object) -> str | None:
    """Say why a file put into this storage reaches no worker, None if it does."""
    if not url:
        return "未设置：导入文件须放在本命令与 Worker 都能访问的存储中"
    if str(url).startswith("memory:"):
        return "为 memory://，Worker 看不到：请用 file:// 或 s3://"
    return None


_STORAGE: Final = {"storage.url": _unshared}
