from datetime import UTC, datetime

from redis.asyncio import Redis
from tests.polling.samples import make_account

from junhong_cmp.polling.budget_use import BudgetUse, read_budget_use
from junhong_cmp.polling.concurrency import AccountConcurrency, Slot
from junhong_cmp.polling.tasks import TaskType


async def test_what_calls_have_used_is_read_back(redis: Redis) -> None:
    account = make_account(daily_quota=3, monthly_quota=100, quota_per="card", qps=1000.0)
    concurrency = AccountConcurrency(redis)
    slots = await concurrency.acquire_batch(account, TaskType.POLLING_CARDDATA, (1, 2))
    assert all(isinstance(slot, Slot) for slot in slots)
    await concurrency.close()
    now = datetime.now(UTC)
    found = await read_budget_use(redis, account, now)
    assert found is not None
    assert (found.day.used, found.day.left, found.month.left) == (2, 1, 98)
    assert now < found.day.renewed_at <= found.month.renewed_at


async def test_an_account_without_budgets_or_without_a_day_has_none(redis: Redis) -> None:
    now = datetime.now(UTC)
    assert await read_budget_use(redis, make_account(), now) is None
    assert await read_budget_use(redis, make_account(daily_quota=1, tz="Mars/Base"), now) is None
    found = await read_budget_use(redis, make_account(monthly_quota=5), now)
    assert found is not None
    assert (found.day.limit, found.day.left, found.month.left) == (None, None, 5)


def test_what_was_used_before_a_limit_was_lowered_leaves_nothing() -> None:
    assert BudgetUse(5, 9, datetime.now(UTC)).left == 0
