import asyncio
import itertools
from datetime import timedelta

from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.polling.samples import make_account
from tests.waiting import wait_until

from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling import keys
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal, Slot
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA


async def in_flight(concurrency: AccountConcurrency, account_ids: list[int]) -> dict[int, int]:
    loads = await concurrency.loads.read([make_account(id=account_id) for account_id in account_ids])
    return {account_id: load.in_flight for account_id, load in loads.items()}


async def test_no_more_slots_than_the_account_allows_in_any_process(redis: Redis) -> None:
    account = make_account(concurrency=3, qps=10_000.0)
    one, other = AccountConcurrency(redis), AccountConcurrency(redis)
    taken = await asyncio.gather(
        *(each.acquire(account, CARDDATA, n) for n in (1, 2) for each in (one, other))
    )
    assert sorted(str(got) for got in taken if isinstance(got, Refusal)) == ["Refusal.IN_FLIGHT"] * 2
    assert isinstance(await other.acquire(account, CARDDATA, 3), Slot)
    assert await other.acquire(account, CARDDATA, 4) is Refusal.SATURATED
    assert await in_flight(one, [7, 8]) == {7: 3, 8: 0}


async def test_task_types_of_a_card_do_not_exclude_each_other(redis: Redis) -> None:
    concurrency, account = AccountConcurrency(redis), make_account(qps=1000.0)
    assert isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)
    assert isinstance(await concurrency.acquire(account, TaskType.POLLING_CARDSTATUS, 1), Slot)


async def test_a_released_slot_is_free_again(redis: Redis) -> None:
    concurrency, account = AccountConcurrency(redis), make_account(concurrency=1, qps=1000.0)
    slot = await concurrency.acquire(account, CARDDATA, 1)
    assert isinstance(slot, Slot)
    await concurrency.release(slot)
    assert isinstance(await concurrency.acquire(account, CARDDATA, 2), Slot)


async def test_the_slot_of_a_crashed_holder_runs_out(redis: Redis) -> None:
    crashed = AccountConcurrency(redis, slot_lease=timedelta(milliseconds=50))
    account = make_account(concurrency=1, qps=1000.0)
    late = await crashed.acquire(account, CARDDATA, 1)
    concurrency = AccountConcurrency(redis)

    async def free() -> bool:
        return isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)

    await wait_until(free, timeout=5, description="the lease to run out")
    assert isinstance(late, Slot)
    await crashed.release(late)
    assert await in_flight(concurrency, [7]) == {7: 1}, "a late release frees nobody else's slot"


async def test_a_leaked_slot_does_not_count_as_in_flight(redis: Redis) -> None:
    await redis.zadd(keys.account_slots(7), {"carddata:1": 1000})
    assert await in_flight(AccountConcurrency(redis), [7]) == {7: 0}


async def test_calls_beyond_the_rate_wait_for_their_token_or_are_refused(redis: Redis) -> None:
    concurrency = AccountConcurrency(redis, rate_wait=timedelta(milliseconds=500))
    account = make_account(qps=10.0)
    got = await asyncio.gather(*(concurrency.acquire(account, CARDDATA, n) for n in range(20)))
    waits = [slot.wait_s for slot in got if isinstance(slot, Slot)]
    assert len(waits) in (6, 7)
    assert got.count(Refusal.SATURATED) == 20 - len(waits)
    gaps = [round(later - earlier, 2) for earlier, later in itertools.pairwise(waits)]
    assert waits[0] == 0
    assert gaps == [0.1] * len(gaps)


async def test_a_refused_call_holds_neither_slot_nor_token(redis: Redis) -> None:
    concurrency = AccountConcurrency(redis, rate_wait=timedelta())
    account = make_account(qps=1.0)
    assert isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)
    point = await redis.get(keys.account_rate(7))
    assert await concurrency.acquire(account, CARDDATA, 2) is Refusal.SATURATED
    assert await redis.get(keys.account_rate(7)) == point
    assert await in_flight(concurrency, [7]) == {7: 1}


async def test_a_token_of_a_slow_account_outlives_the_slot_lease(redis: Redis) -> None:
    concurrency = AccountConcurrency(redis, slot_lease=timedelta(seconds=1))
    await concurrency.acquire(make_account(qps=0.01), CARDDATA, 1)
    assert await redis.pttl(keys.account_rate(7)) > 90_000


async def test_a_clock_that_stepped_back_does_not_stop_an_account(redis: Redis) -> None:
    seconds, _ = await redis.time()
    await redis.set(keys.account_rate(7), (seconds + 3600) * 1_000_000)
    concurrency, account = AccountConcurrency(redis), make_account(qps=1000.0)

    async def admitted() -> bool:
        return isinstance(await concurrency.acquire(account, CARDDATA, 1), Slot)

    await wait_until(admitted, timeout=3, description="a token")


async def test_accounts_are_told_apart_within_one_batch(redis: Redis) -> None:
    concurrency = AccountConcurrency(redis)
    small, large = make_account(concurrency=1, qps=1e4), make_account(id=8, code="b", qps=1e4)
    got = await asyncio.gather(
        *(concurrency.acquire(account, CARDDATA, n) for n in range(3) for account in (small, large))
    )
    assert [isinstance(each, Slot) for each in got] == [True, True, False, True, False, True]
    assert [each.account_id for each in got if isinstance(each, Slot)] == [7, 8, 8, 8]
    await asyncio.gather(*(concurrency.release(each) for each in got if isinstance(each, Slot)))
    assert await in_flight(concurrency, [7, 8]) == {7: 0, 8: 0}


async def test_a_batch_takes_one_token_and_a_slot_for_each_card(redis: Redis) -> None:
    concurrency, account = AccountConcurrency(redis), make_account(concurrency=2, qps=10.0)
    first = await concurrency.acquire_batch(account, CARDDATA, range(1, 101))
    second = await concurrency.acquire_batch(account, CARDDATA, range(100, 110))
    assert {slot.wait_s for slot in first if isinstance(slot, Slot)} == {0.0}
    assert second[0] is Refusal.IN_FLIGHT, "the hundredth card is in flight already"
    waits = {slot.wait_s for slot in second[1:] if isinstance(slot, Slot)}
    assert len(waits) == 1
    assert 0 < waits.pop() <= 0.1
    assert await in_flight(concurrency, [7]) == {7: 2}, "calls, not cards"
    assert await concurrency.acquire(account, CARDDATA, 1000) is Refusal.SATURATED
    concurrency.release_soon([slot for slot in first if isinstance(slot, Slot)])
    await concurrency.close()
    assert await in_flight(concurrency, [7]) == {7: 1}
    assert await redis.zcard(keys.account_riders(7)) == 8


async def test_a_rider_is_in_flight_for_single_calls_too(redis: Redis) -> None:
    concurrency, account = AccountConcurrency(redis), make_account(qps=1000.0)
    await concurrency.acquire_batch(account, CARDDATA, (1, 2, 3))
    assert await concurrency.acquire(account, CARDDATA, 2) is Refusal.IN_FLIGHT


async def test_many_batches_at_once_are_told_apart(redis: Redis) -> None:
    concurrency, account = AccountConcurrency(redis), make_account(concurrency=100, qps=1e6)
    batches = [range(first, first + 100) for first in range(0, 2000, 100)]
    got = await asyncio.gather(*(concurrency.acquire_batch(account, CARDDATA, batch) for batch in batches))
    for batch, slots in zip(batches, got, strict=True):
        assert [slot.member for slot in slots if isinstance(slot, Slot)] == [f"carddata:{n}" for n in batch]
    assert await in_flight(concurrency, [7]) == {7: 20}
    for slots in got:
        concurrency.release_soon([slot for slot in slots if isinstance(slot, Slot)])
    await concurrency.close()
    assert await redis.exists(keys.account_slots(7), keys.account_riders(7)) == 0


async def test_a_slot_that_cannot_be_given_back_is_told_and_left_to_its_lease(
    redis: Redis, redis_server: EmbeddedRedis
) -> None:
    concurrency, account = AccountConcurrency(redis), make_account(qps=1000.0)
    slot = await concurrency.acquire(account, CARDDATA, 1)
    assert isinstance(slot, Slot)
    await redis_server.stop()
    with capture_logs() as logs:
        concurrency.release_soon([slot])
        await concurrency.close()
        await wait_until(lambda: bool(logs), description="the complaint")
    assert logs[0]["event"] == "在途名额未能归还，等待其到期"
    await redis_server.start()
