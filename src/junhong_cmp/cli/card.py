"""``junhong card``: lists of cards as files, and all there is about one card."""

from pathlib import Path
from typing import Annotated

import typer

from junhong_cmp.cli.card_order import resume_card, stop_card
from junhong_cmp.cli.card_set import set_card
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.settings import Service, load_settings
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup

Number = Annotated[str, typer.Argument(metavar="ICCID", help="19 或 20 位")]
Limit = Annotated[
    int, typer.Option("--limit", "-n", metavar="条数", min=1, max=1000, help="每类记录最多几条")
]
AccountCode = Annotated[
    str | None,
    typer.Option("--account", "-a", metavar="CODE", help="只导出此账号的卡", show_default=False),
]
Status = Annotated[
    str | None,
    typer.Option(
        "--status", "-s", metavar="状态", help="只导出此状态的卡，如 active 或 已激活", show_default=False
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", "-f", metavar="csv|xlsx", help="文件格式；不给则由文件名决定", show_default=False
    ),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="写到此文件，- 为标准输出")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    group.command("export", cls=ChineseCommand, help="把卡清单导出为 CSV 或 XLSX")(export_cards)
    group.command("show", cls=ChineseCommand, help="显示一张卡：状态、按日用量、轮询、操作、历史")(show_card)
    group.command("stop", cls=ChineseCommand, help="下达停机指令")(stop_card)
    group.command("resume", cls=ChineseCommand, help="下达复机指令")(resume_card)
    group.command("set", cls=ChineseCommand, help="设定或去掉卡自己的阈值，改卡的套餐")(set_card)
    app.add_typer(group, name="card", help="查看卡，导出卡清单，停复机，设阈值")


def export_cards(
    *,
    account: AccountCode = None,
    status: Status = None,
    kind: Format = None,
    out: Out = "-",
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Write live cards to a file or to standard output."""
    settings = load_settings({"config": config_file, "postgres.dsn": postgres_dsn}, without=Service.REDIS)
    from junhong_cmp.cli.card_run import ExportOrder, run_export  # noqa: PLC0415 - a wrong configuration first

    order = ExportOrder(account_code=account, status=status, kind=kind, out=None if out == "-" else Path(out))
    raise SystemExit(run_export(settings, order))


def show_card(
    iccid: Number,
    limit: Limit = 10,
    as_json: AsJson = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Print all there is about one card."""
    settings = load_settings({"config": config_file, "postgres.dsn": postgres_dsn}, without=Service.REDIS)
    from junhong_cmp.cli.card_run import run_show  # noqa: PLC0415 - as above

    raise SystemExit(run_show(settings, iccid, limit=limit, as_json=as_json))
