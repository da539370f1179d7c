"""``junhong plan``: what plans contain, on which their cards are warned about and stopped."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from junhong_cmp.cards.limit_store import PlanUse, list_plan_use, record_plan
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup
from junhong_cmp.db.pool import Conn
from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.quantities import whole_kb
from junhong_cmp.polling.protect_sweep import SweepCause, count_candidates

_MAX_NAME: Final = 100
_UNIT: Final = 1024


@dataclass(frozen=True, slots=True)
class Change:
    """A plan before and after, and how many cards the rules would stop with it."""

    old_kb: int | None
    plan: PlanUse
    to_stop: int


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    group.command("ls", cls=ChineseCommand, help="列出套餐的每周期流量与卡数，含卡上有而未设流量的套餐")(
        list_plans
    )
    group.command("set", cls=ChineseCommand, help="新建套餐或修改其每周期流量")(set_plan)
    app.add_typer(group, name="plan", help="套餐：每个计费周期的流量")


def parse_volume(text: str) -> int:
    """Return a volume a user gave with its unit, in KB."""
    try:
        kilobytes = whole_kb(text, None, default_unit="")
    except BadResponse as error:
        raise typer.BadParameter("须为带单位的流量，如 500MB、1.5GB，单位 KB、MB、GB、TB") from error
    if kilobytes < 1:
        raise typer.BadParameter("须不小于 1KB")
    return kilobytes


Name = Annotated[str, typer.Argument(metavar="套餐", help="卡上所写的套餐名")]
Quota = Annotated[
    int,
    typer.Option("--quota", "-q", metavar="流量", parser=parse_volume, help="每个计费周期的流量，如 500MB"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="只校验并显示结果，不改动")]


def list_plans(
    account: Annotated[str | None, typer.Argument(metavar="[账号]", help="只列该账号的套餐")] = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Print one row a plan."""

    async def work(conn: Conn) -> list[PlanUse]:
        only = None if account is None else (await account_named(conn, account)).id
        return await list_plan_use(conn, only)

    plans = PollingAccess(config_file, postgres_dsn).run("无法读取套餐", work)
    if as_json:
        print_json([plan._asdict() for plan in plans])
    elif plans:
        _print_table(plans)
    else:
        typer.echo("没有套餐，用 junhong plan set 新建")


def set_plan(
    account: Annotated[str, typer.Argument(metavar="账号", help="运营商账号的代码")],
    name: Name,
    *,
    quota_kb: Quota,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Say what a plan contains."""
    if not name.strip() or not name.isprintable() or len(name) > _MAX_NAME:
        raise typer.BadParameter(f"须为 1 到 {_MAX_NAME} 个字符，不含换行", param_hint="套餐")

    async def work(conn: Conn) -> Change:
        return await _change(conn, account, PlanUse(account, name, quota_kb, 0), dry_run=dry_run)

    change = PollingAccess(config_file, postgres_dsn).run("套餐未保存", work)
    if as_json:
        old = {"old_quota_kb": change.old_kb, "cards_to_stop": change.to_stop, "saved": not dry_run}
        print_json({**change.plan._asdict(), **old})
        return
    verb = "校验通过，未改动" if dry_run else "已新建" if change.old_kb is None else "已修改"
    volumes = f"{volume_text(change.old_kb)} → {volume_text(quota_kb)}"
    typer.echo(f"套餐 {name} {verb}：{volumes}，{change.plan.cards} 张卡")
    if change.to_stop:
        typer.echo(f"提示：账号 {account} 现有 {change.to_stop} 张卡已达停机条件，Worker 将逐张判定并停机")


async def _change(conn: Conn, code: str, wanted: PlanUse, *, dry_run: bool) -> Change:
    """Record the plan in a transaction that a dry run takes back."""
    account = await account_named(conn, code)
    transaction = conn.transaction()
    await transaction.start()
    try:
        before = {plan.name: plan.quota_kb for plan in await list_plan_use(conn, account.id)}
        await record_plan(conn, account.id, wanted.name, wanted.quota_kb or 0)
        (plan,) = [each for each in await list_plan_use(conn, account.id) if each.name == wanted.name]
        to_stop = 0
        if account.protect_enabled:
            to_stop = await count_candidates(conn, account, SweepCause.USAGE, datetime.now(UTC))
    except BaseException:
        await transaction.rollback()
        raise
    await (transaction.rollback() if dry_run else transaction.commit())
    return Change(before.get(wanted.name), plan, to_stop)


def volume_text(kilobytes: int | None) -> str:
    """Return a volume for people, exactly: in the largest unit of which it is a whole or a half number."""
    if kilobytes is None:
        return "未设"
    halves, unit = kilobytes * 2, "KB"
    for larger in ("MB", "GB", "TB"):
        if halves < 2 * _UNIT or halves % _UNIT:
            break
        halves, unit = halves // _UNIT, larger
    return f"{halves // 2}{'.5' if halves % 2 else ''}{unit}"


def _print_table(plans: list[PlanUse]) -> None:
    from rich.markup import escape  # noqa: PLC0415 - only a table needs it
    from rich.table import Table  # noqa: PLC0415 - as above

    from junhong_cmp.cli.tables import open_console  # noqa: PLC0415 - as above

    table = Table("账号", "套餐", "每周期流量", "卡", title="套餐")
    for plan in plans:
        cells = (plan.account, plan.name, volume_text(plan.quota_kb), str(plan.cards))
        table.add_row(*map(escape, cells))
    open_console().print(table)
