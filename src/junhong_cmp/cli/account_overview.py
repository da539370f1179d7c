"""Accounts as an operator looks at them: settings, cards, what is left of their budgets, and pauses."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.cards.account_cards import CardGroup, count_card_groups
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cli.account_fields import FIELDS
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.budget_use import AccountBudgets, BudgetUse, read_budget_use


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """An account, its cards in groups, and its budgets: None if it has none, or nobody could be asked."""

    account: CarrierAccount
    groups: Sequence[CardGroup]
    budgets: AccountBudgets | None

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
    """Return the account of this code, or all, and whether their budgets could be looked up.

    Redis is asked only if an account has a budget. Without it the rest is shown all the same: an account is
    looked at most when something does not work.
    """
    async with pool.acquire() as conn:
        accounts = [each for each in await list_accounts(conn) if code in (None, each.code)]
        only = accounts[0].id if code is not None and accounts else None
        groups = defaultdict(list)
        for group in await count_card_groups(conn, only):
            groups[group.account_id].append(group)
    try:
        budgets = await _read_budgets(settings, accounts)
    except FAULTS:
        return [AccountOverview(each, groups[each.id], None) for each in accounts], False
    return [AccountOverview(each, groups[each.id], budgets.get(each.id)) for each in accounts], True


async def _read_budgets(settings: Settings, accounts: Sequence[CarrierAccount]) -> dict[int, AccountBudgets]:
    limited = [each for each in accounts if (each.daily_quota, each.monthly_quota) != (None, None)]
    if not limited:
        return {}
    now = datetime.now(UTC)
    async with aclosing(open_redis(settings.redis.url.get_secret_value(), pool_size=1)) as redis:
        found = {each.id: await read_budget_use(redis, each, now) for each in limited}
    return {account_id: budgets for account_id, budgets in found.items() if budgets is not None}


def _plain(use: BudgetUse) -> dict[str, Any]:
    return {**asdict(use), "left": use.left}
