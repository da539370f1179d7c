import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from tests.polling.samples import make_account

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling import keys
from junhong_cmp.polling.budgets import BudgetBook, budgets_at
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal, Slot
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA
ZONES = st.sampled_from(["Asia/Shanghai", "UTC", "America/Sao_Paulo", "Europe/Berlin", "Asia/Kathmandu"])
INSTANTS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - see timezones


def test_an_account_without_quotas_has_no_budgets() -> None:
    assert budgets_at(make_account(), datetime.now(UTC)) is None


@given(INSTANTS, ZONES, st.integers(1, 28))
def test_an_instant_lies_in_its_budgets_and_the_next_ones_follow_at_once(
    at: datetime, zone: str, billing_day: int
) -> None:
    account = make_account(daily_quota=5, monthly_quota=100, tz=zone, billing_day=billing_day)
    budgets = budgets_at(account, at)
    assert budgets is not None
    at_ms = at.timestamp() * 1000
    for budget, later in ((budgets.day, "day"), (budgets.month, "month")):
        assert budget.start_ms <= at_ms < budget.end_ms
        first = datetime.fromtimestamp(budget.start_ms / 1000, ZoneInfo(zone))
        assert later == "day" or first.day == billing_day
        following = budgets_at(account, datetime.fromtimestamp(budget.end_ms / 1000, UTC))
        assert following is not None
        assert getattr(following, later).start_ms == budget.end_ms


def test_the_month_of_unicom_begins_on_the_27th_in_shanghai() -> None:
    account = make_account(monthly_quota=100, billing_day=27)
    budgets = budgets_at(account, datetime(2026, 11, 26, 16, 30, tzinfo=UTC))
    assert budgets is not None
    assert budgets.month.name == "month:2026-11-27"
    assert budgets.month.end_ms == datetime(2026, 12, 26, 16, tzinfo=UTC).timestamp() * 1000
    assert budgets.day.name == "day:2026-11-27"
    assert budgets.day.limit is None


def test_a_book_computes_anew_what_redis_says_is_over() -> None:
    account, book = make_account(daily_quota=5), BudgetBook()
    today = book.of(account)
    assert today is not None
    book.correct(account.id, today.day.end_ms)
    tomorrow = book.of(account)
    assert tomorrow is not None
    assert tomorrow.day.start_ms == today.day.end_ms
    assert timedelta(hours=22) < book.rest(tomorrow.day) <= timedelta(hours=25)


async def acquire(concurrency: AccountConcurrency, account: CarrierAccount, *cards: int) -> list[object]:
    return list(await concurrency.acquire_batch(account, CARDDATA, cards))


async def test_no_more_calls_than_the_budget_over_all_processes(redis: Redis) -> None:
    account = make_account(daily_quota=7, monthly_quota=None, qps=10_000.0, concurrency=1000)
    fleet = [AccountConcurrency(redis) for _ in range(3)]
    got = await asyncio.gather(*(fleet[card % 3].acquire(account, CARDDATA, card) for card in range(1, 31)))
    assert sum(isinstance(each, Slot) for each in got) == 7
    assert {each for each in got if isinstance(each, Refusal)} == {Refusal.DAY_BUDGET}
    rest = fleet[0].budget_rest(account, Refusal.DAY_BUDGET)
    assert rest is not None
    assert timedelta() < rest <= timedelta(days=1)
    assert fleet[0].budget_rest(account, Refusal.SATURATED) is None


async def test_a_refused_call_costs_nothing(redis: Redis) -> None:
    account = make_account(daily_quota=10, concurrency=1, qps=1000.0)
    concurrency = AccountConcurrency(redis)
    assert isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)
    for card in (2, 3):
        assert await concurrency.acquire(account, CARDDATA, card) is Refusal.SATURATED
    budgets = budgets_at(account, datetime.now(UTC))
    assert budgets is not None
    assert await redis.get(keys.account_budget(account.id, budgets.day.name)) == b"1"


async def test_the_month_refuses_what_the_day_would_allow(redis: Redis) -> None:
    account = make_account(daily_quota=100, monthly_quota=1, qps=1000.0)
    concurrency = AccountConcurrency(redis)
    assert isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)
    assert await concurrency.acquire(account, CARDDATA, 2) is Refusal.MONTH_BUDGET
    rest = concurrency.budget_rest(account, Refusal.MONTH_BUDGET)
    assert rest is not None
    assert rest <= timedelta(days=31)


async def test_what_was_used_is_forgotten_when_the_budget_is_renewed(redis: Any) -> None:
    account = make_account(daily_quota=3, qps=1000.0)
    await AccountConcurrency(redis).acquire(account, CARDDATA, 1)
    budgets = budgets_at(account, datetime.now(UTC))
    assert budgets is not None
    key = keys.account_budget(account.id, budgets.day.name)
    assert await redis.execute_command("PEXPIRETIME", key) == budgets.day.end_ms


@pytest.mark.parametrize(("per", "admitted"), [("call", [4, 4, 0]), ("card", [4, 2, 0])])
async def test_a_batch_costs_one_or_as_many_as_its_cards(redis: Redis, per: str, admitted: list[int]) -> None:
    limit = 2 if per == "call" else 6
    account = make_account(daily_quota=limit, quota_per=per, qps=1000.0)
    concurrency = AccountConcurrency(redis)
    counts = []
    for first in (10, 20, 30):
        got = await acquire(concurrency, account, *range(first, first + 4))
        counts.append(sum(isinstance(each, Slot) for each in got))
        assert {each for each in got if isinstance(each, Refusal)} <= {Refusal.DAY_BUDGET}
    assert counts == admitted


async def test_a_day_that_ended_is_found_out_by_redis_alone(redis: Redis) -> None:
    account = make_account(daily_quota=1, qps=1000.0)
    seconds, _ = await redis.time()
    slow = BudgetBook()
    slow.note((seconds - 86_400) * 1000)
    concurrency = AccountConcurrency(redis, budgets=slow)
    assert isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)
    budgets = budgets_at(account, datetime.fromtimestamp(seconds, UTC))
    assert budgets is not None
    assert await redis.get(keys.account_budget(account.id, budgets.day.name)) == b"1"
