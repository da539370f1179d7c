"""``junhong pool``: data pools that cards of an account share, on which they are warned about and stopped."""

from dataclasses import asdict
from typing import Annotated

import typer

from junhong_cmp.cards.limit_removal import remove_pool
from junhong_cmp.cards.pool_store import PoolUse, list_pool_use
from junhong_cmp.cards.volumes import rough_volume, volume_text
from junhong_cmp.cli import pool_cards
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.limit_options import AccountCode, DryRun, PoolName
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.pool_edit import PoolChange, PoolEdit
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup
from junhong_cmp.cli.volumes import parse_volume
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.rule_editor import RuleRefusedError

Capacity = Annotated[
    int | None,
    typer.Option(
        "--capacity",
        "-q",
        metavar="流量",
        parser=parse_volume,
        help="每个计费周期的流量，如 100GB；新建时必填",
        show_default=False,
    ),
]
Threshold = Annotated[
    int | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="流量",
        parser=parse_volume,
        help="停机线：池内各卡合计用到多少即停机，如 95GB；不设则为容量",
        show_default=False,
    ),
]
NoThreshold = Annotated[bool, typer.Option("--no-threshold", help="去掉停机线，以容量为准")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    for name, explanation, command in (
        ("ls", "列出流量池的容量、停机线、本周期用量与卡数", list_pools),
        ("set", "新建流量池，或修改其容量与停机线", set_pool),
        ("rm", "删除没有卡的流量池", remove),
    ):
        group.command(name, cls=ChineseCommand, help=explanation)(command)
    pool_cards.register(group)
    app.add_typer(group, name="pool", help="流量池：多张卡共用的流量")


def list_pools(
    account: Annotated[str | None, typer.Argument(metavar="[账号]", help="只列该账号的流量池")] = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Print one row a pool."""

    async def work(conn: Conn) -> list[PoolUse]:
        only = None if account is None else (await account_named(conn, account)).id
        return await list_pool_use(conn, only)

    pools = PollingAccess(config_file, postgres_dsn).run("无法读取流量池", work)
    if as_json:
        print_json([pool._asdict() for pool in pools])
    elif pools:
        _print_table(pools)
    else:
        typer.echo("没有流量池，用 junhong pool set 新建")


def set_pool(
    account: AccountCode,
    name: PoolName,
    *,
    capacity_kb: Capacity = None,
    threshold_kb: Threshold = None,
    no_threshold: NoThreshold = False,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Say what a pool contains, and at which total its cards are stopped."""
    if no_threshold and threshold_kb is not None:
        raise typer.BadParameter("--threshold 与 --no-threshold 二者选一")
    if capacity_kb is None and threshold_kb is None and not no_threshold:
        raise typer.BadParameter("给出要设定的内容：--capacity，--threshold 或 --no-threshold")
    edit = PoolEdit(name, capacity_kb, threshold_kb, removes_threshold=no_threshold)

    async def work(conn: Conn) -> PoolChange:
        return await edit.apply(conn, await account_named(conn, account), dry_run=dry_run)

    change = PollingAccess(config_file, postgres_dsn).run("流量池未保存", work)
    if as_json:
        print_json({**asdict(change), "pool": change.pool._asdict(), "saved": not dry_run})
    else:
        _tell(change, dry_run=dry_run)


def remove(
    account: AccountCode,
    name: PoolName,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Remove a pool no card shares."""

    async def work(conn: Conn) -> None:
        removal = await remove_pool(conn, (await account_named(conn, account)).id, name)
        if not removal.found:
            raise RuleRefusedError(
                f"账号 {account} 没有流量池 {name}；junhong pool ls {account} 列出现有流量池"
            )
        if removal.cards:
            raise RuleRefusedError(
                f"流量池 {name} 中仍有 {removal.cards} 张卡；先用 junhong pool take 移出（--all 为全部）"
            )

    PollingAccess(config_file, postgres_dsn).run("流量池未删除", work)
    typer.echo(f"已删除账号 {account} 的流量池 {name}")


def _tell(change: PoolChange, *, dry_run: bool) -> None:
    pool = change.pool
    verb = "校验通过，未改动" if dry_run else "已新建" if change.old_capacity_kb is None else "已修改"
    if (change.old_capacity_kb, change.old_threshold_kb) == (pool.capacity_kb, pool.threshold_kb):
        verb = "没有变化"
    parts = [f"容量 {volume_text(change.old_capacity_kb)} → {volume_text(pool.capacity_kb)}"]
    if change.old_threshold_kb != pool.threshold_kb:
        parts.append(f"停机线 {volume_text(change.old_threshold_kb)} → {volume_text(pool.threshold_kb)}")
    parts.append(f"{pool.cards} 张卡，本周期已用 {rough_volume(pool.used_kb)}")
    typer.echo(f"流量池 {pool.name} {verb}：{'，'.join(parts)}")
    if (pool.threshold_kb or 0) > pool.capacity_kb:
        typer.echo("提示：停机线高于容量，用量超出容量后才停机")
    if change.cards_to_stop:
        typer.echo(
            f"提示：账号 {pool.account} 现有 {change.cards_to_stop} 张卡因流量池已达停机条件，"
            "Worker 将在 5 分钟内逐张判定并停机"
        )
    if change.cards_to_resume:
        typer.echo(
            f"提示：账号 {pool.account} 有 {change.cards_to_resume} 张因用量停机的卡不再超限，"
            "Worker 将在 5 分钟内逐张判定并复机"
        )


def _print_table(pools: list[PoolUse]) -> None:
    from rich.markup import escape  # noqa: PLC0415 - only a table needs it
    from rich.table import Table  # noqa: PLC0415 - as above

    from junhong_cmp.cli.tables import open_console  # noqa: PLC0415 - as above

    table = Table("账号", "流量池", "容量", "停机线", "周期", "已用", "占比", "卡", title="流量池")
    for pool in pools:
        share = f"{pool.used_kb / pool.capacity_kb:.0%}" if pool.capacity_kb else "-"
        cells = (
            *(pool.account, pool.name, volume_text(pool.capacity_kb), volume_text(pool.threshold_kb)),
            *(pool.cycle or "-", rough_volume(pool.used_kb), share, str(pool.cards)),
        )
        table.add_row(*map(escape, cells))
    open_console().print(table)
