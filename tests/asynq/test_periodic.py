"""A set of periodic tasks that changes while the scheduler runs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import SchedulerEntry
from junhong_cmp.asynq.periodic import EntryProvider, PeriodicTaskManager
from junhong_cmp.asynq.scheduler import CronEntry
from junhong_cmp.asynq.task import EnqueueOptions, Task

QUEUE = EnqueueOptions(queue="q")
TOP = int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp())
QUICK = timedelta(seconds=0.05)


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Source:
    """A provider a test changes."""

    def __init__(self, *entries: CronEntry) -> None:
        self.entries: Any = list(entries)
        self.error: Exception | None = None
        self.asked = 0
        self.threads: set[int] = set()

    def __call__(self) -> Sequence[CronEntry]:
        self.asked += 1
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        entries: Sequence[CronEntry] = self.entries
        return entries

    async def asked_again(self, times: int = 2) -> None:
        before = self.asked
        await wait_until(lambda: self.asked >= before + times, timeout=8, description="asked again")


def every_minute(name: str, payload: bytes = b"") -> CronEntry:
    return CronEntry(name, "* * * * *", Task("t", payload), QUEUE)


@asynccontextmanager
async def managing(redis: Redis, clock: Clock, provider: EntryProvider) -> AsyncIterator[PeriodicTaskManager]:
    manager = PeriodicTaskManager(redis, provider, sync_interval=QUICK, clock=clock)
    await manager.start()
    try:
        yield manager
    finally:
        await manager.stop()


async def has_run(redis: Redis, name: str, at: int) -> bool:
    return bool(await redis.exists(f"asynq:{{q}}:t:cron:{name}:{at}"))


async def known(redis: Redis, name: str) -> bool:
    return bool(await redis.exists(f"asynq:{{q}}:cron:{name}:since"))


async def shown(redis: Redis) -> list[str]:
    """Ids of the entries the tools see."""
    (key,) = await redis.keys("asynq:schedulers:*")
    raws: Any = await redis.lrange(key, 0, -1)
    return sorted(SchedulerEntry.FromString(raw).id for raw in raws)


async def test_entries_come_and_go_and_the_others_keep_their_last_run(redis: Redis) -> None:
    clock, source = Clock(TOP - 10), Source(every_minute("a"), every_minute("b"))
    async with managing(redis, clock, source):
        await wait_until(lambda: known(redis, "b"), description="both are known")
        clock.now = TOP
        await wait_until(lambda: has_run(redis, "b", TOP), description="the first runs")
        source.entries = [every_minute("a"), every_minute("c")]
        await wait_until(lambda: known(redis, "c"), description="the new one is known")
        clock.now = TOP + 60
        await wait_until(lambda: has_run(redis, "c", TOP + 60), description="the second runs")
        await wait_until(lambda: has_run(redis, "a", TOP + 60), description="of the old one too")
        assert await shown(redis) == ["a", "c"]
    ids: Any = await redis.lrange("asynq:{q}:pending", 0, -1)
    assert sorted(raw.decode() for raw in ids) == [
        f"cron:{name}:{at}" for name, at in [("a", TOP), ("a", TOP + 60), ("b", TOP), ("c", TOP + 60)]
    ]
    assert await redis.get("asynq:{q}:cron:a:last") == str(TOP + 60).encode()  # a stop forgets nothing


async def test_an_entry_that_comes_back_has_missed_nothing(redis: Redis) -> None:
    clock, source = Clock(TOP - 10), Source(every_minute("a"))
    async with managing(redis, clock, source):
        await wait_until(lambda: known(redis, "a"), description="known")
        source.entries = []
        await wait_until(lambda: _not(known(redis, "a")), description="forgotten")
        clock.now = TOP + 90
        source.entries = [every_minute("a")]
        await wait_until(lambda: known(redis, "a"), description="known again")
        clock.now = TOP + 120
        await wait_until(lambda: has_run(redis, "a", TOP + 120), description="the next run")
    assert await redis.llen("asynq:{q}:pending") == 1


async def test_a_changed_task_replaces_the_old_one_and_does_not_run_twice(redis: Redis) -> None:
    clock, source = Clock(TOP - 10), Source(every_minute("a", b"old"))
    async with managing(redis, clock, source):
        await wait_until(lambda: known(redis, "a"), description="known")
        clock.now = TOP
        await wait_until(lambda: has_run(redis, "a", TOP), description="the first run")
        source.entries = [every_minute("a", b"new")]
        await source.asked_again()
        clock.now = TOP + 60
        await wait_until(lambda: has_run(redis, "a", TOP + 60), description="the second run")
    raw: Any = await redis.hget(f"asynq:{{q}}:t:cron:a:{TOP + 60}", "msg")
    assert b"new" in raw
    assert await redis.llen("asynq:{q}:pending") == 2


async def test_a_failing_provider_leaves_the_old_set_in_force(redis: Redis) -> None:
    clock, source = Clock(TOP - 10), Source(every_minute("a"))
    with capture_logs() as logs:
        async with managing(redis, clock, source):
            await wait_until(lambda: known(redis, "a"), description="known")
            source.error = ConnectionError("the table is away")
            await source.asked_again()
            source.error, source.entries = None, [every_minute("x"), every_minute("x")]
            await source.asked_again()
            source.entries = None
            await source.asked_again()
            clock.now = TOP
            await wait_until(lambda: has_run(redis, "a", TOP), description="it runs all the same")
    told = [entry for entry in logs if entry["event"] == "定时任务来源出错，沿用现有条目"]
    assert {entry["log_level"] for entry in told} == {"warning"}
    assert {entry["error_type"] for entry in told} == {"ConnectionError", "InvalidTaskError", "TypeError"}


async def test_a_faulty_entry_does_not_keep_the_others_from_running_and_is_told_once(redis: Redis) -> None:
    clock = Clock(TOP - 10)
    source = Source(CronEntry("bad", "61 * * * *", Task("t"), QUEUE), every_minute("good"))
    with capture_logs() as logs:
        async with managing(redis, clock, source):
            await wait_until(lambda: known(redis, "good"), description="known")
            await source.asked_again(3)
    told = [entry for entry in logs if entry["event"] == "定时任务条目无效，已跳过"]
    assert [(entry["entry"], entry["log_level"]) for entry in told] == [("bad", "error")]


async def test_a_plain_provider_does_not_hold_up_the_loop_and_an_async_one_runs_on_it(redis: Redis) -> None:
    source = Source(every_minute("a"))
    async with managing(redis, Clock(TOP), source):
        await source.asked_again(1)
    assert threading.get_ident() not in source.threads
    loops: list[asyncio.AbstractEventLoop] = []

    async def provide() -> list[CronEntry]:
        loops.append(asyncio.get_running_loop())
        return [every_minute("b")]

    async with managing(redis, Clock(TOP), provide):
        await wait_until(lambda: known(redis, "b"), description="known")
    assert set(loops) == {asyncio.get_running_loop()}


async def test_many_managers_fire_once(redis: Redis) -> None:
    clock = Clock(TOP - 10)
    managers = [
        PeriodicTaskManager(redis, Source(every_minute("a")), sync_interval=QUICK, clock=clock)
        for _ in range(4)
    ]
    for manager in managers:
        await manager.start()
    await wait_until(lambda: known(redis, "a"), description="known")
    clock.now = TOP
    await wait_until(lambda: has_run(redis, "a", TOP), description="the run")
    await asyncio.gather(*(manager.stop() for manager in managers))
    assert await redis.llen("asynq:{q}:pending") == 1


async def _not(answer: Any) -> bool:
    return not await answer
