"""How much of their budgets of calls accounts have used."""

from dataclasses import dataclass
from datetime import UTC, datetime

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.polling import keys
from junhong_cmp.polling.budgets import Budget, budgets_at


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What was used of a budget of ``limit`` calls (None: any number), and when it begins anew."""

    limit: int | None
    used: int
    renewed_at: datetime

    @property
    def left(self) -> int | None:
        """How many calls are left; None for any number."""
        return None if self.limit is None else max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class AccountBudgets:
    """The budgets of an account for its day and its billing cycle."""

    day: BudgetUse
    month: BudgetUse


async def read_budget_use(redis: RedisClient, account: CarrierAccount, at: datetime) -> AccountBudgets | None:
    """Return what all processes together have used by now; None when the account has no budget.

    A budget without a limit is not counted, so its use is 0. An account in a time zone nobody knows has no
    day to have a budget for, and is not called either.
    """
    budgets = budgets_at(account, at) if find_zone(account.tz) is not None else None
    if budgets is None:
        return None
    names = [keys.account_budget(account.id, budget.name) for budget in (budgets.day, budgets.month)]
    day, month = await redis.execute_command("MGET", *names)  # one hash tag, so a cluster answers it too
    return AccountBudgets(_use(budgets.day, day), _use(budgets.month, month))


def _use(budget: Budget, counted: bytes | None) -> BudgetUse:
    return BudgetUse(budget.limit, int(counted or 0), datetime.fromtimestamp(budget.end_ms / 1000, UTC))
