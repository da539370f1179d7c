"""Every branch of the lease's scripts, on a real server."""

from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from tests.leadership.candidates import QUICK, candidate, field, server_ms, shift_expiry
from tests.waiting import wait_until

from junhong_cmp.leadership import keys
from junhong_cmp.leadership.lease import Elected, LeaseRecord
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.leadership.times import LeaseTimes

LONG = LeaseTimes()
ONE, TWO = candidate("甲"), candidate("甲")  # the same name twice: only the identity counts
HOUR = timedelta(hours=1)


@pytest.fixture
def store(redis: Redis) -> LeaseStore:
    return LeaseStore(redis)


async def elect(store: LeaseStore, who: Any = ONE, **options: Any) -> Elected:
    won = await store.acquire(who, LONG, **options)
    assert isinstance(won, Elected)
    return won


async def test_a_free_lease_is_taken(store: LeaseStore, redis: Redis) -> None:
    before = await server_ms(redis)
    won = await elect(store)
    assert before <= won.epoch <= await server_ms(redis)
    assert won.gap is None
    record = (await store.read()).lease
    assert (record.holder, record.name, record.host, record.pid) == (ONE.holder, ONE.name, ONE.host, ONE.pid)
    assert (record.epoch, record.seq, record.ttl) == (won.epoch, 1, LONG.ttl)
    assert record.since == won.epoch
    assert record.alive
    assert 14 < record.expires_in <= 15


async def test_a_held_lease_is_not_taken_and_the_candidate_stands_by(store: LeaseStore) -> None:
    won = await elect(store)
    held = await store.acquire(TWO, LONG)
    assert isinstance(held, LeaseRecord)
    assert (held.holder, held.epoch, held.seq) == (ONE.holder, won.epoch, 1)
    view = await store.read()
    assert view.standbys == (TWO,)
    assert view.lease.holder == ONE.holder


async def test_a_standby_counts_for_a_while_only(store: LeaseStore, redis: Redis) -> None:
    await elect(store)
    await store.acquire(TWO, QUICK)
    assert (await store.read()).standbys == (TWO,)

    async def forgotten() -> bool:
        return not (await store.read()).standbys

    await wait_until(forgotten, description="the standby's time is over")
    await wait_until(
        lambda: _absent(redis, keys.standbys()), description="nothing is left when nobody stands by"
    )


async def _absent(redis: Any, key: str) -> bool:
    return not await redis.exists(key)


async def test_an_elected_standby_stands_by_no_more(store: LeaseStore, redis: Redis) -> None:
    won = await elect(store)
    await store.acquire(TWO, LONG)
    await store.release(ONE.holder, won.epoch)
    await elect(store, TWO)
    assert (await store.read()).standbys == ()


async def test_a_withdrawn_standby_is_gone(store: LeaseStore) -> None:
    await elect(store)
    await store.acquire(TWO, LONG)
    await store.withdraw(TWO)
    assert (await store.read()).standbys == ()


async def test_a_lapsed_lease_is_taken_in_a_higher_term(store: LeaseStore, redis: Redis) -> None:
    first = await elect(store)
    await shift_expiry(redis, -HOUR)
    second = await elect(store, TWO)
    assert second.epoch > first.epoch
    assert second.gap is not None


async def test_the_holder_itself_gets_a_higher_term(store: LeaseStore) -> None:
    """Its earlier attempt won, but the reply was lost: no loop has run under that epoch."""
    first = await elect(store)
    assert (await elect(store)).epoch > first.epoch


async def test_a_lease_seen_dead_is_taken_whatever_the_servers_clock_says(
    store: LeaseStore, redis: Redis
) -> None:
    await elect(store)
    await shift_expiry(redis, HOUR)
    held = await store.acquire(TWO, LONG)
    assert isinstance(held, LeaseRecord)
    await elect(store, TWO, observed=held.state)


async def test_a_lease_renewed_since_it_was_seen_is_not_taken(store: LeaseStore) -> None:
    won = await elect(store)
    held = await store.acquire(TWO, LONG)
    assert isinstance(held, LeaseRecord)
    assert await store.renew(ONE.holder, won.epoch, LONG.ttl) is None
    assert isinstance(await store.acquire(TWO, LONG, observed=held.state), LeaseRecord)


async def test_epochs_grow_when_the_clock_stood_still_or_stepped_back(
    store: LeaseStore, redis: Redis
) -> None:
    ahead = await server_ms(redis) + 3_600_000
    await redis.hset(keys.lease(), "epoch", str(ahead))
    assert (await elect(store)).epoch == ahead + 1


async def test_an_epoch_exceeds_the_fence_that_refused_the_last_one(store: LeaseStore, redis: Redis) -> None:
    fence = await server_ms(redis) + 3_600_000
    assert (await elect(store, floor=fence)).epoch == fence + 1


async def test_epochs_grow_over_lost_data(store: LeaseStore, redis: Redis) -> None:
    before = (await elect(store)).epoch
    await redis.flushall()

    async def time_went_on() -> bool:
        return await server_ms(redis) > before

    await wait_until(time_went_on, description="the next millisecond")
    assert (await elect(store)).epoch > before


async def test_a_renewal_moves_the_expiry_and_is_seen(store: LeaseStore, redis: Redis) -> None:
    won = await elect(store)
    await shift_expiry(redis, -HOUR)
    assert await store.renew(ONE.holder, won.epoch, LONG.ttl) is None  # lapsed, but nobody took it
    record = (await store.read()).lease
    assert record.alive
    assert record.seq == 2


@pytest.mark.parametrize("what", ["other holder", "other term", "gone", "released"])
async def test_a_renewal_of_what_is_not_ours_is_refused(store: LeaseStore, redis: Redis, what: str) -> None:
    won = await elect(store)
    if what == "other holder":
        await redis.hset(keys.lease(), "holder", TWO.holder)
    elif what == "other term":
        await redis.hset(keys.lease(), "epoch", str(won.epoch + 1))
    elif what == "gone":
        await redis.delete(keys.lease())
    else:
        await store.release(ONE.holder, won.epoch)
    before = await redis.hgetall(keys.lease())
    other = await store.renew(ONE.holder, won.epoch, LONG.ttl)
    assert other is not None
    assert other.holder == {"other holder": TWO.holder, "other term": ONE.holder}.get(what, "")
    assert await redis.hgetall(keys.lease()) == before, "a refused renewal writes nothing"


async def test_a_released_lease_is_free_and_its_epoch_stays(store: LeaseStore, redis: Redis) -> None:
    won = await elect(store)
    assert await store.release(ONE.holder, won.epoch)
    assert not (await store.read()).lease.alive
    assert await field(redis, "epoch") == str(won.epoch)
    second = await elect(store, TWO)
    assert second.epoch > won.epoch
    assert second.gap is not None
    assert second.gap < timedelta(seconds=5)


@pytest.mark.parametrize("what", ["other holder", "other term", "gone"])
async def test_a_late_release_frees_nothing(store: LeaseStore, redis: Redis, what: str) -> None:
    won = await elect(store)
    if what == "gone":
        await redis.delete(keys.lease())
    holder = TWO.holder if what == "other holder" else ONE.holder
    assert not await store.release(holder, won.epoch + (what == "other term"))
    assert (await store.read()).lease.alive is (what != "gone")


@pytest.mark.parametrize(
    "garbage", ["inf", "nan", "-1", "1e300", "9007199254740990", "9007199254740993", "很久", ""]
)
async def test_garbage_in_the_lease_is_worth_nothing(store: LeaseStore, redis: Redis, garbage: str) -> None:
    fields = ("epoch", "seq", "expires", "renewed", "ttl", "since", "pid")
    await redis.hset(keys.lease(), mapping={"holder": "x", **dict.fromkeys(fields, garbage)})
    record = (await store.read()).lease
    if record.alive:  # the one number that can be an instant, if a far one
        assert record.described["holder_since"]
        await redis.hset(keys.lease(), mapping={"expires": "0", "epoch": "0"})
    won = await elect(store)
    assert abs(won.epoch - await server_ms(redis)) < 10_000


async def test_foreign_values_under_our_keys_are_replaced(store: LeaseStore, redis: Redis) -> None:
    await redis.set(keys.lease(), "x")
    await redis.set(keys.standbys(), "x")
    assert await store.renew(ONE.holder, 1, LONG.ttl) is not None
    assert not await store.release(ONE.holder, 1)
    view = await store.read()
    assert (view.lease.alive, view.standbys) == (False, ())
    await elect(store)
    await store.acquire(TWO, LONG)
    await redis.zadd(keys.standbys(), {"no candidate": await server_ms(redis) + 60_000})
    assert (await store.read()).standbys == (TWO,)


async def test_the_lease_is_kept_when_redis_is_out_of_memory(store: LeaseStore, redis: Redis) -> None:
    await redis.config_set("maxmemory", "1")
    try:
        won = await elect(store)
        assert await store.renew(ONE.holder, won.epoch, LONG.ttl) is None
        assert isinstance(await store.acquire(TWO, LONG), LeaseRecord)
        assert await store.release(ONE.holder, won.epoch)
    finally:
        await redis.config_set("maxmemory", "0")


class ServerBefore7:
    """A server that takes the first line of a script with flags for Lua, as servers before 7 do."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self.refused = 0

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] == "EVAL" and args[1].startswith("#!"):
            self.refused += 1
            raise ResponseError("Error compiling script (new function): user_script:1: unexpected symbol")
        return await self._redis.execute_command(*args, **options)

    def pipeline(self, transaction: Any = None) -> Any:
        return self._redis.pipeline(transaction)

    def pubsub(self, **kwargs: Any) -> Any:
        return self._redis.pubsub(**kwargs)

    async def aclose(self) -> None:
        await self._redis.aclose()


async def test_a_server_without_script_flags_runs_them_without(redis: Redis) -> None:
    await redis.script_flush()
    server = ServerBefore7(redis)
    store = LeaseStore(server)
    won = await elect(store)
    for _ in range(3):
        assert await store.renew(ONE.holder, won.epoch, LONG.ttl) is None
    assert server.refused == 2  # once a script
