"""Electors against a real server: one leads, and somebody leads again after whatever happens."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Self

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.faultproxy import FaultProxy
from tests.leadership.candidates import QUICK, STEADY, candidate, field, shift_expiry
from tests.redis_servers import RedisFixture
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.leadership import keys
from junhong_cmp.leadership.elector import LeaderElector, LeaderState
from junhong_cmp.leadership.lease_store import LeaseStore
from junhong_cmp.leadership.term import Term, TermEnd
from junhong_cmp.leadership.times import LeaseTimes

HOUR = timedelta(hours=1)
TAKE_OVER_S = QUICK.ttl.total_seconds() + QUICK.retry.total_seconds() * 1.2
SLACK_S = 1.0  # test machines are busy


class Electors:
    """Electors on one server, stopped at the end of the test."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def start(self, name: str, url: str = "", times: LeaseTimes = QUICK) -> LeaderElector:
        def connect() -> RedisClient:
            return open_redis(url or self._url, pool_size=2, socket_timeout=times.attempt)

        elector = LeaderElector(candidate(name), times, connect)
        elector.start()
        self._stack.push_async_callback(elector.stop)
        return elector


@pytest.fixture
async def electors(redis: Redis, redis_url: str) -> AsyncIterator[Electors]:
    async with Electors(redis_url) as electors:
        yield electors


async def won_by(elector: LeaderElector) -> Term:
    async with asyncio.timeout(10):
        return await elector.next_term()


async def ends(term: Term) -> TermEnd:
    await wait_until(lambda: term.end_reason, description="the term ends")
    assert term.end_reason is not None
    return term.end_reason


def said(logs: list[EventDict], sentence: str) -> list[EventDict]:
    return [entry for entry in logs if entry["event"] == sentence]


async def test_of_three_started_together_one_leads(electors: Electors, redis: Redis) -> None:
    with capture_logs() as logs:
        three = [electors.start(name, times=STEADY) for name in "甲乙丙"]
        states = [await elector.first_answer() for elector in three]
        assert sorted(states) == sorted([LeaderState.LEADING, LeaderState.STANDBY, LeaderState.STANDBY])
        leader = three[states.index(LeaderState.LEADING)]
        term = await won_by(leader)
        assert str(term.epoch) == await field(redis, "epoch")

        async def both_stand_by() -> bool:
            return len((await LeaseStore(redis).read()).standbys) == 2

        await wait_until(both_stand_by, description="two standbys")
        await wait_until(lambda: _renewed(redis, 2), description="the lease is renewed")
    elected = said(logs, "当选主节点")
    assert all("gap_s" not in entry for entry in elected), "nobody had led before"
    assert [(entry["term"], entry["holder"]) for entry in elected] == [
        (term.epoch, await field(redis, "holder"))
    ]
    warned = said(logs, "已有主节点，本实例热备")
    assert len(warned) == 2, "one line a standby, however often it asks"
    for entry in warned:
        assert entry["log_level"] == "warning"
        assert entry["holder_name"] == await field(redis, "name")
        assert entry["holder_pid"] == int(await field(redis, "pid"))
        assert entry["holder_host"]
        assert entry["holder_since"]


async def _renewed(redis: Redis, times: int) -> bool:
    return int(await field(redis, "seq") or 0) > times


async def test_a_hand_over_is_quick_and_the_old_term_was_over(electors: Electors) -> None:
    first = electors.start("甲")
    old = await won_by(first)
    second = electors.start("乙")
    assert await second.first_answer() is LeaderState.STANDBY
    with capture_logs() as logs:
        old.end(TermEnd.RESIGNED)
        assert first.state is LeaderState.RESIGNING
        await first.stop()
        began = time.monotonic()
        new = await won_by(second)
        assert time.monotonic() - began < QUICK.retry.total_seconds() * 1.2 + SLACK_S
    assert new.epoch > old.epoch
    assert said(logs, "卸任主节点")[0]["reason"] == "计划内卸任"
    assert said(logs, "当选主节点")[0]["gap_s"] < QUICK.retry.total_seconds() * 1.2 + SLACK_S


async def test_nobody_is_elected_here_before_the_old_loops_have_ended(
    electors: Electors, redis: Redis
) -> None:
    elector = electors.start("甲")
    old = await won_by(elector)
    await redis.delete(keys.lease())
    assert await ends(old) is TermEnd.LOST
    assert elector.state is LeaderState.RESIGNING
    for _ in range(20):
        assert not await redis.exists(keys.lease())
        await asyncio.sleep(0.02)  # the absence of an election is what is being watched
    elector.close_term()
    assert (await won_by(elector)).epoch > old.epoch


async def test_a_flushed_redis_elects_anew_in_a_higher_term(electors: Electors, redis: Redis) -> None:
    elector = electors.start("甲")
    old = await won_by(elector)
    with capture_logs() as logs:
        await redis.flushall()
        assert await ends(old) is TermEnd.LOST
    assert said(logs, "失去主节点租约，停止调度")[0]["term"] == old.epoch
    elector.close_term()
    assert (await won_by(elector)).epoch > old.epoch


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_steps_under_a_living_leader(electors: Electors, redis: Redis, hours: int) -> None:
    """Alone, a leader keeps its lease over a step of the server's clock either way."""
    elector = electors.start("甲", times=STEADY)
    term = await won_by(elector)
    seq = int(await field(redis, "seq"))
    await shift_expiry(redis, HOUR * hours)
    await wait_until(lambda: _renewed(redis, seq + 1), description="two renewals")
    assert term.trusted
    assert abs((await LeaseStore(redis).read()).lease.expires_in) <= STEADY.ttl.total_seconds()


async def test_a_clock_that_steps_ahead_moves_the_lease_safely(electors: Electors, redis: Redis) -> None:
    first = electors.start("甲")
    old = await won_by(first)
    second = electors.start("乙")
    await second.first_answer()
    await shift_expiry(redis, -HOUR)
    new = await won_by(second) if await _second_took_it(redis, old) else old
    if new is not old:  # else the holder renewed first, which is as good
        assert await ends(old) is TermEnd.LOST
        assert new.epoch > old.epoch


async def _second_took_it(redis: Redis, old: Term) -> bool:
    await wait_until(lambda: _alive(redis), description="somebody holds the lease again")
    return await field(redis, "epoch") != str(old.epoch)


async def _alive(redis: Redis) -> bool:
    return (await LeaseStore(redis).read()).lease.alive


async def test_a_dead_leader_is_followed_though_the_clock_stepped_back(
    electors: Electors, redis: Redis
) -> None:
    """A lease that lapses in an hour, of a holder that never renews: watched for one ttl, then taken."""
    store = LeaseStore(redis)
    await store.acquire(candidate("死"), QUICK)
    await shift_expiry(redis, HOUR)
    began = time.monotonic()
    await won_by(electors.start("甲"))
    assert QUICK.ttl.total_seconds() * 0.9 < time.monotonic() - began < TAKE_OVER_S + SLACK_S


async def test_a_lease_left_behind_is_waited_out_and_is_no_conflict(electors: Electors, redis: Redis) -> None:
    await LeaseStore(redis).acquire(candidate("死"), QUICK)
    elector = electors.start("甲")
    assert await elector.first_answer() is LeaderState.STANDBY
    async with asyncio.timeout(10):
        assert await elector.decision() is LeaderState.LEADING


async def test_a_leader_that_renews_is_a_conflict(electors: Electors) -> None:
    await won_by(electors.start("甲"))
    second = electors.start("乙")
    async with asyncio.timeout(10):
        assert await second.decision() is LeaderState.STANDBY
    assert second.rival is not None
    assert second.rival.name == "甲"


async def test_a_disputed_term_is_followed_by_one_above_the_fence(electors: Electors) -> None:
    elector = electors.start("甲")
    old = await won_by(elector)
    fence = old.epoch + 1_000_000
    old.dispute(fence)
    elector.close_term()
    assert (await won_by(elector)).epoch == fence + 1


async def test_a_lease_that_vanished_is_followed_by_a_term_above_any_seen(
    electors: Electors, redis: Redis
) -> None:
    """Redis may have set its clock back too: a second term of the same number would pass every fence."""
    ahead = int(time.time() * 1000) + 3_600_000
    await redis.hset(keys.lease(), "epoch", str(ahead))
    first = electors.start("甲")
    old = await won_by(first)
    assert old.epoch == ahead + 1
    second = electors.start("乙")
    assert await second.first_answer() is LeaderState.STANDBY
    await redis.delete(keys.lease())
    taken_over = await won_by(second)
    assert taken_over.epoch > old.epoch
    taken_over.end(TermEnd.RESIGNED)
    await second.stop()
    await redis.delete(keys.lease())
    first.close_term()
    assert (await won_by(first)).epoch > old.epoch


async def test_a_holder_without_a_name_is_called_unnamed(electors: Electors) -> None:
    with capture_logs() as logs:
        await won_by(electors.start(""))
        assert await electors.start("乙").first_answer() is LeaderState.STANDBY
    [elected], [told] = said(logs, "当选主节点"), said(logs, "已有主节点，本实例热备")
    assert elected["holder_name"] == told["holder_name"] == "未命名"


async def test_a_blocked_event_loop_keeps_the_lease(electors: Electors, redis: Redis) -> None:
    term = await won_by(electors.start("甲", times=STEADY))
    other = electors.start("乙", times=STEADY)
    await other.first_answer()
    time.sleep(STEADY.ttl.total_seconds() * 1.5)  # noqa: ASYNC251 - the blocked loop is what is being tried
    assert term.trusted
    assert await field(redis, "epoch") == str(term.epoch)


async def test_out_of_memory_the_lease_is_kept(electors: Electors, redis: Redis) -> None:
    elector = electors.start("甲", times=STEADY)
    term = await won_by(elector)
    await redis.config_set("maxmemory", "1")
    try:
        seq = int(await field(redis, "seq"))
        await wait_until(lambda: _renewed(redis, seq + 1), description="two renewals")
        assert term.trusted
    finally:
        await redis.config_set("maxmemory", "0")


async def test_a_restart_of_redis_is_outlived(
    electors: Electors, redis: Redis, redis_server: RedisFixture
) -> None:
    """Short, the term goes on; longer than the lease, the term ends and another begins."""
    elector = electors.start("甲")
    term = await won_by(elector)
    await redis_server.restart()

    async def decided() -> bool:
        return term.end_reason is not None or await _renewed(redis, 3)

    await wait_until(decided, description="the lease is renewed, or the term is over")
    if term.end_reason is not None:
        elector.close_term()
        term = await won_by(elector)
    assert term.trusted
    assert await field(redis, "epoch") == str(term.epoch)


@pytest.mark.single_node("the proxy stands before one server")
@pytest.mark.parametrize("fault", ["stall", "refuse"])
async def test_a_leader_cut_off_steps_down_before_another_is_elected(
    electors: Electors, redis_server: RedisFixture, redis_url: str, fault: str
) -> None:
    async with FaultProxy(redis_url) as proxy:
        with capture_logs() as logs:
            cut_off = electors.start("甲", proxy.url)
            old = await won_by(cut_off)
            other = electors.start("乙")
            await other.first_answer()
            getattr(proxy, fault)()
            new = await won_by(other)
            assert not old.trusted, "trust is over before the lease can be another's"
            assert await ends(old) is TermEnd.LAPSED
        assert new.epoch > old.epoch
        failed = said(logs, "租约续约失败")
        assert failed
        assert all(entry["term"] == old.epoch and entry["remaining_s"] < 1 for entry in failed)
        proxy.resume()
        cut_off.close_term()
        await wait_until(lambda: cut_off.rival is not None, description="it stands by again")


async def test_a_stop_with_redis_away_ends_in_a_second(
    electors: Electors, redis_server: RedisFixture
) -> None:
    elector = electors.start("甲")
    await won_by(elector)
    await redis_server.kill()
    began = time.monotonic()
    await elector.stop()
    assert time.monotonic() - began < 1.0 + SLACK_S


async def test_a_stop_at_any_moment_leaves_no_lease(electors: Electors, redis: Redis) -> None:
    for step in range(12):
        elector = electors.start("甲")
        await asyncio.sleep(step * 0.002)  # the moment is what is being tried
        await elector.stop()
        assert not await _alive(redis)
    assert (await LeaseStore(redis).read()).standbys == ()
