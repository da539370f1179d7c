"""``junhong account set`` and ``add``: an account changed or made, judged as a whole before it is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from junhong_cmp.cards.account_store import NewAccount, described, lock_account, record_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cli.account_edit import Difference, changed, differences, hints, with_defaults
from junhong_cmp.cli.account_fields import FIELDS
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.db.pool import Conn
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.polling.protect_sweep import SweepCause, count_candidates
from junhong_cmp.polling.rule_editor import RuleRefusedError, guarded_edit

AccountCode = Annotated[str, typer.Argument(metavar="账号", help="运营商账号的代码")]
Assignments = Annotated[
    list[str] | None,
    typer.Argument(metavar="键=值…", help=f"{'、'.join(FIELDS)}；junhong account show 列出各键可取的值"),
]
Driver = Annotated[str, typer.Option("--driver", "-d", metavar="驱动", help="、".join(DRIVERS))]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="只校验并显示结果，不改动")]

_MAX_CODE = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an edit changed, what is worth knowing of it, and how many cards the rules would now stop."""

    differences: Sequence[Difference]
    hints: Sequence[str]
    to_stop: int


def register(group: typer.Typer) -> None:
    """Add the commands to their group."""
    group.command("set", cls=ChineseCommand, help="修改账号的设置，整体校验通过才写入")(change)
    group.command("add", cls=ChineseCommand, help="新建账号，未给出的设置取驱动的默认值")(add)


def change(
    account: AccountCode,
    assignments: Assignments = None,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Change what is given of an account, all of it or nothing."""
    if not assignments:
        raise typer.BadParameter(f"给出要修改的 键=值，键为 {'、'.join(FIELDS)}", param_hint="键=值…")

    async def work(conn: Conn) -> Outcome:
        await account_named(conn, account)
        async with conn.transaction():
            # The account before the configuration: whoever pauses it takes them in this order, too.
            found = await lock_account(conn, account)
            if found is None:
                raise RuleRefusedError(f"账号 {account} 刚被删除")
            old = described(found)
            return await _record(conn, old, changed(old, assignments), dry_run=dry_run)

    outcome = PollingAccess(config_file, postgres_dsn).run("账号未修改", work)
    if as_json:
        _print_outcome(account, outcome, saved=not dry_run)
    elif outcome.differences:
        verb = "校验通过，未改动" if dry_run else "已修改"
        _tell(f"账号 {account} {verb}：", outcome)
    else:
        typer.echo(f"账号 {account} 没有变化")


def add(
    account: AccountCode,
    assignments: Assignments = None,
    *,
    driver: Driver,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Make an account."""
    if driver not in DRIVERS:
        raise typer.BadParameter(f"须为 {'、'.join(DRIVERS)} 之一", param_hint="--driver")
    if not account.isprintable() or any(map(str.isspace, account)) or not 0 < len(account) <= _MAX_CODE:
        raise typer.BadParameter(f"须为 1 到 {_MAX_CODE} 个字符，不含空白", param_hint="账号")

    async def work(conn: Conn) -> Outcome:
        new = changed(with_defaults(account, DRIVERS[driver]), assignments or ())
        return await _record(conn, None, new, dry_run=dry_run)

    outcome = PollingAccess(config_file, postgres_dsn).run("账号未新建", work)
    if as_json:
        _print_outcome(account, outcome, saved=not dry_run)
    else:
        _tell(f"账号 {account} {'校验通过，未新建' if dry_run else '已新建'}：", outcome)


async def _record(conn: Conn, old: NewAccount | None, new: NewAccount, *, dry_run: bool) -> Outcome:
    """Write the account unless nothing changes; workers are told by the table's trigger."""
    found = differences(old, new)
    keys = [difference.key for difference in found]
    if old is not None and not found:
        return Outcome((), (), 0)
    async with guarded_edit(conn, dry_run=dry_run) as stored:
        if old is None and any(each.code == new.code for each in stored.accounts):
            raise RuleRefusedError(f"账号 {new.code} 已存在，用 junhong account set 修改")
        account = await record_account(conn, new)
        return Outcome(found, hints(new, keys), await _count_stops(conn, old, account))


async def _count_stops(conn: Conn, old: NewAccount | None, new: CarrierAccount) -> int:
    """Count what rules switched on by this edit find to be stopped at once."""
    now, total = datetime.now(UTC), 0
    if new.protect_enabled and not (old is not None and old.protect_enabled):
        total += await count_candidates(conn, new, SweepCause.USAGE, now)
    if new.stop_on_expiry and not (old is not None and old.stop_on_expiry):
        total += await count_candidates(conn, new, SweepCause.EXPIRY, now)
    return total


def _tell(headline: str, outcome: Outcome) -> None:
    typer.echo(headline)
    for each in outcome.differences:
        typer.echo(
            f"  {each.key}  {each.old} → {each.new}" if each.old is not None else f"  {each.key}={each.new}"
        )
    if outcome.to_stop:
        typer.echo(f"提示：现有 {outcome.to_stop} 张卡已达停机条件，Worker 将在 5 分钟内逐张判定并停机")
    for hint in outcome.hints:
        typer.echo(f"提示：{hint}")


def _print_outcome(account: str, outcome: Outcome, *, saved: bool) -> None:
    print_json(
        {
            "account": account,
            "saved": saved and bool(outcome.differences),
            "changes": {each.key: {"old": each.old, "new": each.new} for each in outcome.differences},
            "cards_to_stop": outcome.to_stop,
            "hints": outcome.hints,
        }
    )
