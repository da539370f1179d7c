"""``junhong polling pauses``: what rests now, by whose order, and until when."""

from dataclasses import asdict
from datetime import datetime

import typer

from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, until_text
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.polling.pause_store import PauseInForce, list_pauses


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command("pauses", cls=ChineseCommand, help="列出生效中的暂停：谁、何时起、到何时")(show_pauses)


def show_pauses(
    config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None, as_json: AsJson = False
) -> None:
    """Print the pauses in force."""
    pauses = PollingAccess(config_file, postgres_dsn).run("无法读取暂停", list_pauses)
    if as_json:
        print_json([asdict(pause) for pause in pauses])
    elif pauses:
        _print_table(pauses)
    else:
        typer.echo("没有生效中的暂停")


def _print_table(pauses: list[PauseInForce]) -> None:
    from rich.markup import escape  # noqa: PLC0415 - only a table needs it
    from rich.table import Table  # noqa: PLC0415 - as above

    from junhong_cmp.cli.tables import open_console  # noqa: PLC0415 - as above

    table = Table("账号", "类型", "来自", "原因", "自", "到", title="生效中的暂停")
    for pause in pauses:
        cells = (
            pause.account,
            _kind(pause.task_type),
            "人工" if pause.manual else "运营商",
            pause.reason or "-",
            _instant(pause.since),
            until_text(pause.until),
        )
        table.add_row(*map(escape, cells))
    open_console().print(table)


def _kind(task_type: str | None) -> str:
    return "全部" if task_type is None else task_type.rpartition(":")[2]


def _instant(at: datetime | None) -> str:
    return "-" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
