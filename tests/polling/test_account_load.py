"""The rate a carrier grants: lowered once for many refusals, regrown little by little."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.polling.samples import make_account

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling import keys
from junhong_cmp.polling.account_load import AccountLoad, AccountLoads
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal, Slot
from junhong_cmp.polling.tasks import TaskType

ACCOUNT = make_account(qps=100.0)
KEY = keys.account_granted(ACCOUNT.id)


async def rate(redis: Redis, account: CarrierAccount = ACCOUNT) -> float:
    return (await AccountLoads(redis).read([account]))[account.id].qps


async def age(redis: Redis, seconds: float) -> None:
    """Let the last lowering have happened so much earlier."""
    held = await redis.get(KEY)
    if not isinstance(held, bytes):  # whole again already, and gone
        return
    qps, since_us, growth = held.decode().split()
    await redis.set(KEY, f"{qps} {int(since_us) - int(seconds * 1e6)} {growth}", keepttl=True)


async def test_an_account_nobody_refused_is_asked_at_its_configured_rate(redis: Redis) -> None:
    other = make_account(id=8, qps=0.25)
    assert await AccountLoads(redis).read([ACCOUNT, other]) == {
        ACCOUNT.id: AccountLoad(0, 100.0),
        8: AccountLoad(0, 0.25),
    }


async def test_calls_refused_at_once_lower_the_rate_once_in_all_processes_and_of_that_account_alone(
    redis: Redis,
) -> None:
    fleet, other = [AccountLoads(redis) for _ in range(3)], make_account(id=8, qps=100.0)
    with capture_logs() as logs:
        await asyncio.gather(*(each.refused(ACCOUNT) for each in fleet * 5))
    assert await rate(redis) == pytest.approx(70, abs=1)
    assert await rate(redis, other) == 100
    assert [(entry["event"], entry["qps"], entry["configured"]) for entry in logs] == [
        ("账号被限流，下调调用速率", 70.0, 100.0)
    ]


async def test_one_refused_again_soon_is_far_too_fast_and_halves(redis: Redis) -> None:
    loads = AccountLoads(redis)
    await loads.refused(ACCOUNT)
    await age(redis, 2.5)
    await loads.refused(ACCOUNT)
    assert await rate(redis) == pytest.approx(73, abs=1), "calls admitted before the lowering say nothing new"
    await age(redis, 1)
    await loads.refused(ACCOUNT)
    assert await rate(redis) == pytest.approx(37, abs=1)
    await age(redis, 20)
    grown = await rate(redis)
    assert grown == pytest.approx(49, abs=1)
    await loads.refused(ACCOUNT)
    assert await rate(redis) == pytest.approx(0.7 * grown, abs=1)


async def test_the_rate_grows_evenly_and_the_key_goes_when_it_is_whole(redis: Redis) -> None:
    await AccountLoads(redis).refused(ACCOUNT)
    for seconds in (10, 10):
        before = await rate(redis)
        await age(redis, seconds)
        assert await rate(redis) - before == pytest.approx(70 / 60 * seconds, abs=1)
    assert 25_000 < await redis.pttl(KEY) <= 26_000
    await age(redis, 3600)
    assert await rate(redis) == 100


async def test_a_rate_lowered_far_is_whole_again_within_the_hour(redis: Redis) -> None:
    loads = AccountLoads(redis, once_within=timedelta())
    for _ in range(30):
        await loads.refused(ACCOUNT)
    lowest = await rate(redis)
    assert 0.1 <= lowest < 0.2, "one is always tried now and then"
    assert await redis.pttl(KEY) <= 3_601_000
    await age(redis, 3600)
    assert await rate(redis) == 100


async def test_a_configured_rate_changed_meanwhile_still_bounds_it(redis: Redis) -> None:
    await AccountLoads(redis).refused(ACCOUNT)
    assert await rate(redis, make_account(qps=10.0)) == 10
    assert await rate(redis, make_account(qps=0.05)) == 0.05


@pytest.mark.parametrize("held", ["", "fast", "1 2", "-5 0 0", "0 0 0", "nan nan nan x", "12 x 1"])
async def test_something_foreign_in_its_place_leaves_the_configured_rate(redis: Redis, held: str) -> None:
    await redis.set(KEY, held)
    assert await rate(redis) == 100
    await AccountLoads(redis).refused(ACCOUNT)
    assert await rate(redis) == pytest.approx(70, abs=1)


async def test_a_foreign_kind_of_value_leaves_the_account_out_and_the_others_in(redis: Redis) -> None:
    await redis.lpush(KEY, "x")
    with capture_logs() as logs:
        assert set(await AccountLoads(redis).read([ACCOUNT, make_account(id=8)])) == {8}
    assert [entry["event"] for entry in logs] == ["账号的在途名额无法读取，暂不认领"]


async def test_calls_are_admitted_by_the_lowered_rate(redis: Redis) -> None:
    concurrency = AccountConcurrency(redis, rate_wait=timedelta(milliseconds=500))
    account = make_account(qps=1000.0)
    now_s, _ = await redis.time()
    await redis.set(KEY, f"10 {now_s * 1_000_000} 0")
    got = await asyncio.gather(
        *(concurrency.acquire(account, TaskType.POLLING_CARDDATA, card) for card in range(20))
    )
    waits = [slot.wait_s for slot in got if isinstance(slot, Slot)]
    assert len(waits) in (6, 7)
    assert got.count(Refusal.SATURATED) == 20 - len(waits)
    assert (waits[0], waits[1], waits[-1]) == pytest.approx((0, 0.1, 0.1 * (len(waits) - 1)), abs=0.01)


@given(
    configured=st.floats(0.001, 1e6),
    refusals=st.lists(st.floats(0, 7200), max_size=12),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_whatever_is_refused_the_rate_stays_within_its_bounds(
    redis_url: str, configured: float, refusals: list[float]
) -> None:
    async def check() -> None:
        redis, account = Redis.from_url(redis_url), make_account(qps=configured)
        try:
            await redis.delete(KEY)
            for seconds in refusals:
                await AccountLoads(redis).refused(account)
                await age(redis, seconds)
                granted = await rate(redis, account)
                assert min(configured, 0.1) * 0.99999 <= granted <= configured * 1.00001
        finally:
            await redis.aclose()

    asyncio.run(check())
