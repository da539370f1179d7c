"""Accounts on a terminal."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.markup import escape
from rich.table import Table

from junhong_cmp.cards.carrier import CARRIER_NAMES
from junhong_cmp.cli.account_fields import FIELDS
from junhong_cmp.cli.account_overview import AccountOverview
from junhong_cmp.cli.inspection import moment
from junhong_cmp.cli.polling_access import until_text
from junhong_cmp.cli.tables import open_console
from junhong_cmp.cli.up_pauses import reason_text
from junhong_cmp.exports.labels import STATUS_NAMES, STOP_REASON_NAMES, name_of
from junhong_cmp.polling.budget_use import BudgetUse

_COLUMNS = (
    "账号", "运营商", "驱动", "计费日", "速率/s", "今日配额", "本月配额", "停复机", "状态", "卡",
)  # fmt: skip


def print_accounts(overviews: Sequence[AccountOverview]) -> None:
    """Print one row an account."""
    table = Table(*_COLUMNS, title="运营商账号")
    for each in overviews:
        account = each.account
        cells = (
            account.code,
            CARRIER_NAMES[account.carrier],
            account.driver,
            str(account.billing_day),
            _rate(each),
            _quota(account.daily_quota, each.budgets.day if each.budgets else None),
            _quota(account.monthly_quota, each.budgets.month if each.budgets else None),
            _protection(each),
            _state(each),
            str(each.cards),
        )
        table.add_row(*map(escape, cells))
    open_console().print(table)


def print_account(overview: AccountOverview) -> None:
    """Print all there is about one account; settings as they are set."""
    console = open_console()
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(overview):
        facts.add_row(name, escape(value))
    console.print(facts)
    settings = Table("键", "值", "可取的值", title="设置（junhong account set）")
    for key, field in FIELDS.items():
        settings.add_row(key, escape(field.shown(overview.account)), escape(field.takes))
    console.print(settings)


def _facts(overview: AccountOverview) -> Iterable[tuple[str, str]]:
    account, budgets = overview.account, overview.budgets
    yield "账号", account.code
    yield "状态", _state(overview)
    yield "卡", f"{overview.cards} 张"
    for title, counts, names in (
        ("其中", overview.by_status, STATUS_NAMES),
        ("停机原因", overview.stopped, STOP_REASON_NAMES),
    ):
        if counts:
            yield title, "，".join(f"{name_of(names, key)} {cards}" for key, cards in counts.items())
    if overview.granted_qps is not None:
        yield "速率", f"{overview.granted_qps:.3g}/s，因限流低于所设的 {account.qps:g}/s，逐步回升"
    for title, limit, use in (
        ("今日配额", account.daily_quota, budgets.day if budgets else None),
        ("本月配额", account.monthly_quota, budgets.month if budgets else None),
    ):
        renewed = "" if limit is None or use is None else f"，{moment(use.renewed_at)} 重新计"
        yield title, _quota(limit, use) + renewed


def _rate(overview: AccountOverview) -> str:
    configured = FIELDS["qps"].shown(overview.account)
    return configured if overview.granted_qps is None else f"{overview.granted_qps:.3g}/{configured}"


def _quota(limit: int | None, use: BudgetUse | None) -> str:
    if limit is None:
        return "不限"
    if use is None:
        return f"未知/{limit}"
    return f"已用 {use.used}，剩 {use.left}"


def _protection(overview: AccountOverview) -> str:
    account = overview.account
    named = (("用量", account.protect_enabled), ("到期", account.stop_on_expiry))
    return "、".join(name for name, is_on in named if is_on) or "关"


def _state(overview: AccountOverview) -> str:
    if not overview.account.polling_enabled:
        return "已停用轮询"
    if (pause := overview.pause(datetime.now(UTC))) is None:
        return "正常"
    until, reason = pause
    return f"暂停到{until_text(until)}，{reason_text(reason) or '未注明原因'}"
