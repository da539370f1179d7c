"""Accounts as an operator looks at them: settings, cards, budgets that are left, rates, and pauses."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.cards.account_cards import CardGroup, count_card_groups
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cli.account_fields import FIELDS
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.account_load import AccountLoad, AccountLoads
from junhong_cmp.polling.budget_use import AccountBudgets, BudgetUse, read_budget_use

_ROUNDED: Final = 1 - 1e-5
"""Redis tells six digits of a rate."""


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """An account, its cards in groups, its load, and its budgets.

    ``load`` is None if nobody could be asked, ``budgets`` also if it has none.
    """

    account: CarrierAccount
    groups: Sequence[CardGroup]
    budgets: AccountBudgets | None
    load: AccountLoad | None

    @property
    def granted_qps(self) -> float | None:
        """The rate it is asked at because its carrier refused more; None while that is the configured one."""
        if self.load is None or self.load.qps >= self.account.qps * _ROUNDED:
            return None
        return self.load.qps

    @property
    def cards(self) -> int:
        """How many live cards it has."""
        return sum(group.cards for group in self.groups)

    @property
    def by_status(self) -> Mapping[str, int]:
        """How many of its cards are in each state."""
        return self._count("status")

    @property
    def stopped(self) -> Mapping[str, int]:
        """How many of its cards are stopped, by the reason."""
        return {reason: cards for reason, cards in self._count("stop_reason").items() if reason != "none"}

    def pause(self, now: datetime) -> tuple[datetime, str] | None:
        """Return until when the account rests and why; None when it does not."""
        until = self.account.paused_until
        return None if until is None or until <= now else (until, self.account.pause_reason or "")

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        pause = self.pause(datetime.now(UTC))
        return {
            "code": self.account.code,
            **{key: field.plain(self.account) for key, field in FIELDS.items()},
            "paused_until": pause and pause[0],
            "pause_reason": pause and pause[1],
            "granted_qps": self.load and self.load.qps,
            "calls_in_flight": self.load and self.load.in_flight,
            "cards": {"total": self.cards, "by_status": self.by_status, "stopped": self.stopped},
            "quotas": self.budgets and {"day": _plain(self.budgets.day), "month": _plain(self.budgets.month)},
        }

    def _count(self, attribute: str) -> Mapping[str, int]:
        counter: Counter[str] = Counter()
        for group in self.groups:
            counter[str(getattr(group, attribute))] += group.cards
        return counter


async def load_overviews(
    pool: Pool, settings: Settings, code: str | None = None
) -> tuple[list[AccountOverview], bool]:
    """Return the account of this code, or all, and whether Redis could tell their budgets and loads.

    Without it the rest is shown all the same: an account is looked at most when something does not work.
    """
    async with pool.acquire() as conn:
        accounts = [each for each in await list_accounts(conn) if code in (None, each.code)]
        only = accounts[0].id if code is not None and accounts else None
        groups = defaultdict(list)
        for group in await count_card_groups(conn, only):
            groups[group.account_id].append(group)
    try:
        budgets, loads = await _read_use(settings, accounts)
    except FAULTS:
        return [AccountOverview(each, groups[each.id], None, None) for each in accounts], False
    return [
        AccountOverview(each, groups[each.id], budgets[each.id], loads.get(each.id)) for each in accounts
    ], True


async def _read_use(
    settings: Settings, accounts: Sequence[CarrierAccount]
) -> tuple[dict[int, AccountBudgets | None], dict[int, AccountLoad]]:
    now = datetime.now(UTC)
    async with aclosing(open_redis(settings.redis.url.get_secret_value(), pool_size=1)) as redis:
        budgets = {each.id: await read_budget_use(redis, each, now) for each in accounts}
        return budgets, await AccountLoads(redis).read(accounts)


def _plain(use: BudgetUse) -> dict[str, Any]:
    return {**asdict(use), "left": use.left}
