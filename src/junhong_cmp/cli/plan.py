"""``junhong plan``: what plans contain, on which their cards are warned about and stopped."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from junhong_cmp.cards.limit_removal import remove_plan
from junhong_cmp.cards.limit_store import PlanUse, list_plan_use, record_plan
from junhong_cmp.cards.volumes import volume_text
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.limit_options import AccountCode, DryRun, PlanName
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup
from junhong_cmp.cli.volumes import parse_volume
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.protect_sweep import SweepCause, count_candidates
from junhong_cmp.polling.rule_editor import RuleRefusedError


@dataclass(frozen=True, slots=True)
class Change:
    """A plan before and after, and how many cards the rules would stop with it, and give back."""

    old_kb: int | None
    plan: PlanUse
    to_stop: int
    to_resume: int


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    group.command("ls", cls=ChineseCommand, help="列出套餐的每周期流量与卡数，含卡上有而未设流量的套餐")(
        list_plans
    )
    group.command("set", cls=ChineseCommand, help="新建套餐或修改其每周期流量")(set_plan)
    group.command("rm", cls=ChineseCommand, help="删除没有卡使用的套餐")(remove)
    app.add_typer(group, name="plan", help="套餐：每个计费周期的流量")


Quota = Annotated[
    int,
    typer.Option("--quota", "-q", metavar="流量", parser=parse_volume, help="每个计费周期的流量，如 500MB"),
]


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
    account: AccountCode,
    name: PlanName,
    *,
    quota_kb: Quota,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Say what a plan contains."""

    async def work(conn: Conn) -> Change:
        return await _change(conn, account, PlanUse(account, name, quota_kb, 0), dry_run=dry_run)

    change = PollingAccess(config_file, postgres_dsn).run("套餐未保存", work)
    if as_json:
        effects = {"cards_to_stop": change.to_stop, "cards_to_resume": change.to_resume}
        print_json({**change.plan._asdict(), "old_quota_kb": change.old_kb, **effects, "saved": not dry_run})
        return
    verb = "校验通过，未改动" if dry_run else "已新建" if change.old_kb is None else "已修改"
    verb = "没有变化" if change.old_kb == quota_kb else verb
    volumes = f"{volume_text(change.old_kb)} → {volume_text(quota_kb)}"
    typer.echo(f"套餐 {name} {verb}：{volumes}，{change.plan.cards} 张卡")
    if change.to_stop:
        typer.echo(f"提示：账号 {account} 现有 {change.to_stop} 张卡已达停机条件，Worker 将逐张判定并停机")
    if change.to_resume:
        typer.echo(
            f"提示：账号 {account} 有 {change.to_resume} 张因用量停机的卡不再超限，Worker 将逐张判定并复机"
        )


def remove(
    account: AccountCode,
    name: PlanName,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Remove a plan no card names."""

    async def work(conn: Conn) -> None:
        removal = await remove_plan(conn, (await account_named(conn, account)).id, name)
        if not removal.found:
            raise RuleRefusedError(f"账号 {account} 没有套餐 {name}；junhong plan ls {account} 列出现有套餐")
        if removal.cards:
            raise RuleRefusedError(
                f"仍有 {removal.cards} 张卡使用套餐 {name}；先用 junhong card set --plan 换到其他套餐，"
                "或 --no-plan 去掉"
            )

    PollingAccess(config_file, postgres_dsn).run("套餐未删除", work)
    typer.echo(f"已删除账号 {account} 的套餐 {name}")


async def _change(conn: Conn, code: str, wanted: PlanUse, *, dry_run: bool) -> Change:
    """Record the plan in a transaction that a dry run takes back."""
    account = await account_named(conn, code)
    transaction = conn.transaction()
    await transaction.start()
    try:
        before = {plan.name: plan.quota_kb for plan in await list_plan_use(conn, account.id)}
        await record_plan(conn, account.id, wanted.name, wanted.quota_kb or 0)
        (plan,) = [each for each in await list_plan_use(conn, account.id) if each.name == wanted.name]
        now, to_stop = datetime.now(UTC), 0
        if account.protect_enabled:
            to_stop = await count_candidates(conn, account, SweepCause.USAGE, now)
        to_resume = await count_candidates(conn, account, SweepCause.RAISED, now)
    except BaseException:
        await transaction.rollback()
        raise
    await (transaction.rollback() if dry_run else transaction.commit())
    return Change(before.get(wanted.name), plan, to_stop, to_resume)


def _print_table(plans: list[PlanUse]) -> None:
    from rich.markup import escape  # noqa: PLC0415 - only a table needs it
    from rich.table import Table  # noqa: PLC0415 - as above

    from junhong_cmp.cli.tables import open_console  # noqa: PLC0415 - as above

    table = Table("账号", "套餐", "每周期流量", "卡", title="套餐")
    for plan in plans:
        cells = (plan.account, plan.name, volume_text(plan.quota_kb), str(plan.cards))
        table.add_row(*map(escape, cells))
    open_console().print(table)
