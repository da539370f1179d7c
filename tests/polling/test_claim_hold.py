"""A leader that finds Redis without data claims nothing while forgotten polls may be under way."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.waiting import FakeClock

from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling import keys
from junhong_cmp.polling.claim_hold import ClaimHold
from junhong_cmp.polling.continuity import Continuity
from junhong_cmp.polling.hold_notice import held_for
from junhong_cmp.polling.server_identity import server_identity
from junhong_cmp.polling.settings import PollingSettings

SETTINGS = PollingSettings()
WHOLE = SETTINGS.slot_lease
LONGEST_POLL = SETTINGS.visibility + SETTINGS.slot_lease
HELD = "Redis 丢失过数据，暂缓认领，等待此前发出的查询全部结束"
REPLACED = "Redis 重启或切换过而无主节点核对数据，暂缓认领，等待此前发出的查询全部结束"
OVER = "此前发出的查询已全部结束，恢复认领"

MakeHold = Callable[[], ClaimHold]


@pytest.fixture
async def make_hold(pool: Pool, redis: Redis, clock: FakeClock) -> MakeHold:
    """Make the hold of one more leader; all share a clock that stands where PostgreSQL's does."""
    clock.advance((await pool.fetchval("SELECT now()") - clock.now()).total_seconds())
    return lambda: ClaimHold(pool, redis, SETTINGS, clock=clock)


async def word(redis: Redis) -> Continuity | None:
    value: Any = await redis.get(keys.continuity())
    return None if value is None else Continuity.decode(value)


async def count_a_poll(pool: Pool, clock: FakeClock, ago: timedelta) -> None:
    minute = (clock.now() - ago).replace(second=0, microsecond=0)
    await pool.execute(
        "INSERT INTO poll_minute (task_type, account_id, minute, due) VALUES ('polling:carddata', 1, $1, 1)",
        minute,
    )


async def test_a_first_start_is_not_held_up(make_hold: MakeHold, redis: Redis) -> None:
    hold = make_hold()
    await hold.look()
    assert not await hold.is_on()
    assert await held_for(redis) is None
    assert await word(redis) == Continuity(await server_identity(redis))


async def test_the_next_leader_of_a_whole_redis_is_not_held_up(
    make_hold: MakeHold, pool: Pool, clock: FakeClock
) -> None:
    await make_hold().look()
    await count_a_poll(pool, clock, timedelta())
    successor = make_hold()
    await successor.look()
    assert not await successor.is_on()


@pytest.mark.parametrize("ago", [timedelta(), LONGEST_POLL])
async def test_an_empty_redis_holds_claims_while_a_counted_poll_may_be_under_way(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock, ago: timedelta
) -> None:
    await count_a_poll(pool, clock, ago)
    hold = make_hold()
    with capture_logs() as logs:
        await hold.look()
        clock.advance(WHOLE.total_seconds() - 1)
        await hold.look()  # further shards were sealed: it goes on, and does not begin anew
        assert await hold.is_on()
        left = await held_for(redis)
        assert left is not None
        assert WHOLE - timedelta(seconds=30) < left <= WHOLE, "whoever asks why nothing is polled is told"
        clock.advance(1.1)
        assert not await hold.is_on()
        assert await held_for(redis) is None
        await hold.look()
        assert not await hold.is_on()
    assert [entry["event"] for entry in logs] == [HELD, OVER]
    assert (logs[0]["log_level"], logs[0]["wait_s"]) == ("warning", WHOLE.total_seconds())


async def test_after_a_quiet_night_an_empty_redis_holds_up_nothing(
    make_hold: MakeHold, pool: Pool, clock: FakeClock
) -> None:
    await count_a_poll(pool, clock, LONGEST_POLL + timedelta(minutes=2))
    hold = make_hold()
    await hold.look()
    assert not await hold.is_on()


async def test_a_leader_elected_during_the_hold_holds_a_whole_time_itself(
    make_hold: MakeHold, pool: Pool, clock: FakeClock
) -> None:
    await count_a_poll(pool, clock, timedelta())
    first, second, third = make_hold(), make_hold(), make_hold()
    await first.look()
    clock.advance(WHOLE.total_seconds() / 2)
    await second.look()
    clock.advance(WHOLE.total_seconds() / 2 + 1)
    assert await second.is_on()
    clock.advance(WHOLE.total_seconds() / 2)
    assert not await second.is_on()
    await third.look()
    assert not await third.is_on()


async def test_a_partial_loss_holds_claims_whatever_was_counted(
    make_hold: MakeHold, redis: Redis, clock: FakeClock
) -> None:
    hold = make_hold()
    await hold.look()
    await hold.report_loss()
    successor = make_hold()
    for leader in (hold, successor):
        await leader.look()
        assert await leader.is_on()
    clock.advance(WHOLE.total_seconds() + 0.1)
    assert not await hold.is_on()
    assert await word(redis) == Continuity(await server_identity(redis))


async def test_a_loss_during_the_hold_begins_it_anew(make_hold: MakeHold, clock: FakeClock) -> None:
    hold = make_hold()
    await hold.report_loss()
    await hold.look()
    clock.advance(WHOLE.total_seconds() - 1)
    await hold.report_loss()
    await hold.look()
    clock.advance(2)
    assert await hold.is_on()


async def test_polls_counted_by_a_clock_that_is_behind_count(
    make_hold: MakeHold, pool: Pool, clock: FakeClock
) -> None:
    clock.advance(-3600)
    await count_a_poll(pool, clock, timedelta())
    hold = make_hold()
    await hold.look()
    assert await hold.is_on()


async def test_without_postgresql_the_worst_is_assumed(
    postgres_dsn: str, redis: Redis, clock: FakeClock
) -> None:
    closed = await open_pool(postgres_dsn, max_size=1)
    await closed.close()
    hold = ClaimHold(closed, redis, SETTINGS, clock=clock)
    await hold.look()
    assert await hold.is_on()


async def test_a_redis_of_another_name_holds_claims_while_polls_may_be_under_way(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock, redis_server: EmbeddedRedis
) -> None:
    """A snapshot restored while nobody led brings along the word about the server it was taken of."""
    await make_hold().look()
    await count_a_poll(pool, clock, timedelta())
    await redis_server.restart()
    hold = make_hold()
    with capture_logs() as logs:
        await hold.look()
        assert await hold.is_on()
        clock.advance(WHOLE.total_seconds() + 0.1)
        assert not await hold.is_on()
    assert [entry["event"] for entry in logs] == [REPLACED, OVER]
    assert await word(redis) == Continuity(await server_identity(redis))
    successor = make_hold()
    await successor.look()
    assert not await successor.is_on()


async def test_a_redis_of_another_name_holds_up_nothing_after_a_quiet_night(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock
) -> None:
    await redis.set(keys.continuity(), Continuity("another").encode())
    await count_a_poll(pool, clock, LONGEST_POLL + timedelta(minutes=2))
    hold = make_hold()
    await hold.look()
    assert not await hold.is_on()
    assert await word(redis) == Continuity(await server_identity(redis))


async def test_a_leader_that_left_in_order_vouches_for_a_redis_restarted_since(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock, redis_server: EmbeddedRedis
) -> None:
    first = make_hold()
    await first.look()
    await count_a_poll(pool, clock, timedelta())
    await first.leave()
    await redis_server.restart()
    second = make_hold()
    await second.look()
    assert not await second.is_on()
    assert await word(redis) == Continuity(await server_identity(redis))


async def test_an_old_word_of_a_leader_that_left_vouches_for_nothing_claimed_since(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock
) -> None:
    """A snapshot taken during maintenance, restored while the fleet was at work."""
    left_at_ms = int((clock.now() - timedelta(days=1)).timestamp() * 1000)
    await redis.set(keys.continuity(), Continuity("another", left_at_ms).encode())
    await count_a_poll(pool, clock, timedelta())
    hold = make_hold()
    with capture_logs() as logs:
        await hold.look()
    assert await hold.is_on()
    assert [entry["event"] for entry in logs] == [REPLACED]


async def test_who_holds_or_knows_nothing_does_not_leave_in_order(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock
) -> None:
    await make_hold().leave()
    assert await word(redis) is None
    await count_a_poll(pool, clock, timedelta())
    hold = make_hold()
    await hold.look()
    assert await hold.is_on()
    await hold.leave()
    assert await word(redis) is None


async def test_a_leader_in_office_notices_a_restart_and_vouches_once(
    make_hold: MakeHold, redis: Redis, clock: FakeClock, redis_server: EmbeddedRedis
) -> None:
    hold = make_hold()
    await hold.look()
    assert await hold.new_server() is None
    await redis_server.restart()
    assert await hold.new_server() is None, "asked seldom"
    clock.advance(6)
    server = await hold.new_server()
    assert server == await server_identity(redis)
    await hold.look()
    assert not await hold.is_on(), "further shards are no reason to doubt what is about to be confirmed"
    await hold.vouch(server)
    assert await word(redis) == Continuity(server)
    clock.advance(6)
    assert await hold.new_server() is None


@pytest.mark.parametrize(
    "garbage", [b"\xff", b"kept", b"left:a:b", b"left:a:99999999999999999999", b"a:b:c:d"]
)
async def test_a_word_that_means_nothing_is_a_loss(
    make_hold: MakeHold, pool: Pool, redis: Redis, clock: FakeClock, garbage: bytes
) -> None:
    await count_a_poll(pool, clock, timedelta())
    await redis.set(keys.continuity(), garbage)
    hold = make_hold()
    await hold.look()
    assert await hold.is_on()
