import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import SchedulerEntry, TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.cron import InvalidCronError
from junhong_cmp.asynq.errors import InvalidTaskError
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.scheduler import CronEntry, MisfirePolicy, OverlapPolicy, Scheduler
from junhong_cmp.asynq.task import EnqueueOptions, Task

QUEUE = EnqueueOptions(queue="q")
PENDING = "asynq:{q}:pending"
LAST = "asynq:{q}:cron:hourly:last"
SINCE = "asynq:{q}:cron:hourly:since"
TOP = int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp())
"""A full hour."""
HOUR = 3600


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def hourly(**more: Any) -> CronEntry:
    return CronEntry(
        **{"id": "hourly", "spec": "@hourly", "task": Task("t", b"{}"), "options": QUEUE, **more}
    )


@asynccontextmanager
async def running(redis: Any, clock: Callable[[], float], *entries: CronEntry) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(redis, entries, clock=clock)
    await scheduler.start()
    try:
        yield scheduler
    finally:
        await scheduler.stop()


async def run_once(redis: Any, now: float, *entries: CronEntry) -> None:
    """One turn of a scheduler that just started."""
    await Scheduler(redis, entries, clock=Clock(now))._turn()


async def fired(redis: Redis) -> list[str]:
    """Ids of the enqueued tasks, oldest first."""
    found: Any = await redis.lrange(PENDING, 0, -1)
    return [raw.decode() for raw in reversed(found)]


def misses(logs: Any) -> list[str]:
    return [
        log["scheduled"] for log in logs if log["event"] == "定时任务错过" and log["log_level"] == "warning"
    ]


async def test_an_entry_fires_at_its_instant(redis: Redis) -> None:
    clock = Clock(TOP - 1)
    with capture_logs() as logs:
        async with running(redis, clock, hourly()):
            await wait_until(lambda: redis.exists(SINCE), timeout=5, description="the entry is known")
            assert await fired(redis) == []
            clock.now = TOP + 0.5
            await wait_until(lambda: redis.exists(LAST), timeout=5, description="the run")
    assert await fired(redis) == [f"cron:hourly:{TOP}"]
    assert await redis.get(LAST) == str(TOP).encode()
    raw: Any = await redis.hget(f"asynq:{{q}}:t:cron:hourly:{TOP}", "msg")
    assert TaskMessage.FromString(raw).type == "t"
    assert await redis.smembers("asynq:queues") == {b"q"}
    assert misses(logs) == []


async def test_many_schedulers_fire_once(redis: Redis) -> None:
    clock = Clock(TOP - 1)
    entries = [hourly(), CronEntry("second", "@every 1s", Task("t"), QUEUE)]
    schedulers = [Scheduler(redis, entries, clock=clock) for _ in range(5)]
    for scheduler in schedulers:
        await scheduler.start()
    await wait_until(lambda: redis.exists(SINCE), timeout=5, description="the entries are known")
    for now in (TOP, TOP + 1, TOP + 2):
        clock.now = now
        key = f"asynq:{{q}}:t:cron:second:{now}"
        await wait_until(lambda key=key: redis.exists(key), timeout=5, description="the run")
    await asyncio.gather(*(scheduler.stop() for scheduler in schedulers))
    runs = await fired(redis)
    assert sorted(runs) == sorted(set(runs))
    assert [run for run in runs if "hourly" in run] == [f"cron:hourly:{TOP}"]
    assert len(await Inspector(redis).enqueue_events("hourly")) == 1


async def test_real_time_fires_each_second_once(redis: Redis) -> None:
    async with running(redis, time.time, CronEntry("s", "@every 1s", Task("t"), QUEUE)):
        await wait_until(lambda: redis.llen(PENDING), timeout=5, description="a run")


async def test_who_may_not_fire_does_not_and_settles_nothing(redis: Redis) -> None:
    await run_once(redis, TOP - 10, hourly())
    refused = Scheduler(redis, [hourly()], clock=Clock(TOP), may_fire=lambda: False)
    assert await refused._turn() > 0, "and it does not ask in haste"
    assert await fired(redis) == []
    await run_once(redis, TOP, hourly())
    assert await fired(redis) == [f"cron:hourly:{TOP}"]


async def test_a_new_entry_has_missed_nothing(redis: Redis) -> None:
    with capture_logs() as logs:
        await run_once(redis, TOP + 1800, hourly())
    assert await fired(redis) == []
    assert await redis.get(SINCE) == f"{TOP + 1800} @hourly".encode()
    assert misses(logs) == []


async def test_a_run_missed_before_the_first_is_known(redis: Redis) -> None:
    await run_once(redis, TOP - 600, hourly())
    await run_once(redis, TOP + 600, hourly())
    assert await fired(redis) == [f"cron:hourly:{TOP}"]


@pytest.mark.parametrize(
    ("policy", "runs"),
    [
        (MisfirePolicy.SKIP, []),
        (MisfirePolicy.FIRE_ONCE, [TOP + 3 * HOUR]),
        (MisfirePolicy.FIRE_ALL, [TOP + 2 * HOUR, TOP + 3 * HOUR]),
    ],
)
async def test_missed_runs_follow_the_policy_within_grace(
    redis: Redis, policy: MisfirePolicy, runs: list[int]
) -> None:
    entry = hourly(misfire=policy, grace=timedelta(hours=1, minutes=30))
    await run_once(redis, TOP, entry)
    await redis.set(LAST, TOP)
    with capture_logs() as logs:
        for _ in range(3):  # whoever comes later finds everything settled
            await run_once(redis, TOP + 3 * HOUR + 600, entry)
    assert await fired(redis) == [f"cron:hourly:{run}" for run in runs]
    assert misses(logs) == [
        datetime.fromtimestamp(TOP + hours * HOUR, UTC).isoformat() for hours in (1, 2, 3)
    ]
    assert {log["policy"] for log in logs if "policy" in log} == {policy.value}
    assert await redis.get(LAST) == str(TOP + 3 * HOUR).encode()


async def test_a_changed_spec_has_missed_nothing(redis: Redis) -> None:
    await run_once(redis, TOP - 600, hourly())
    await run_once(redis, TOP + 1830, hourly(spec="* * * * *"))
    assert await fired(redis) == []
    assert await redis.get(SINCE) == f"{TOP + 1830} * * * * *".encode()


async def test_a_flushed_redis_does_not_fire_back(redis: Redis) -> None:
    clock = Clock(TOP)
    scheduler = Scheduler(redis, [hourly()], clock=clock)
    await scheduler._turn()
    clock.now = TOP + HOUR + 1
    await scheduler._turn()
    assert await fired(redis) == [f"cron:hourly:{TOP + HOUR}"]
    await redis.flushall()
    clock.now = TOP + HOUR + 60
    await scheduler._turn()
    await run_once(redis, TOP + HOUR + 70, hourly())
    assert await fired(redis) == []
    clock.now = TOP + 2 * HOUR + 1
    await scheduler._turn()
    assert await fired(redis) == [f"cron:hourly:{TOP + 2 * HOUR}"]


async def test_a_clock_set_back_repeats_nothing(redis: Redis) -> None:
    clock = Clock(TOP - 1)
    scheduler = Scheduler(redis, [hourly()], clock=clock)
    for now in (TOP - 1, TOP + 1, TOP - 300, TOP + 2):
        clock.now = now
        await scheduler._turn()
    await run_once(redis, TOP - 300, hourly())
    await run_once(redis, TOP + 3, hourly())
    assert await fired(redis) == [f"cron:hourly:{TOP}"]


async def test_a_clock_that_ran_a_day_ahead_does_not_freeze_the_entry(redis: Redis) -> None:
    clock = Clock(TOP - 1)
    scheduler = Scheduler(redis, [hourly()], clock=clock)
    for now in (TOP - 1, TOP + 24 * HOUR + 1, TOP + 1, TOP + HOUR + 1):
        clock.now = now
        await scheduler._turn()
    assert await fired(redis) == [
        f"cron:hourly:{TOP + 24 * HOUR}",
        f"cron:hourly:{TOP + HOUR}",
    ]


async def test_a_refused_run_is_settled(redis: Redis) -> None:
    once = EnqueueOptions(queue="q", unique_for=timedelta(hours=5))
    entry = hourly(options=once)
    await Client(redis).enqueue(Task("t", b"{}"), once)
    await run_once(redis, TOP - 1, entry)
    with capture_logs() as logs:
        await run_once(redis, TOP + 1, entry)
        await run_once(redis, TOP + 2, entry)
    assert [log["event"] for log in logs if log["log_level"] == "info"] == [
        "定时任务未入队：相同任务还在队列中"
    ]
    assert await redis.get(LAST) == str(TOP).encode()
    assert await redis.llen(PENDING) == 1


async def test_an_id_that_exists_is_settled(redis: Redis) -> None:
    await Client(redis).enqueue(Task("t"), EnqueueOptions(queue="q", task_id=f"cron:hourly:{TOP}"))
    await run_once(redis, TOP - 1, hourly())
    await run_once(redis, TOP + 1, hourly())
    assert await redis.get(LAST) == str(TOP).encode()
    assert await redis.llen(PENDING) == 1
    assert await Inspector(redis).enqueue_events("hourly") == []


async def test_entries_are_shown_while_the_scheduler_lives(redis: Redis) -> None:
    clock = Clock(TOP - 1)
    inspector = Inspector(redis, clock=clock)
    options = EnqueueOptions(queue="q", max_retry=3, timeout=timedelta(minutes=1))
    async with running(redis, clock, hourly(options=options)), running(redis, clock, hourly()) as other:
        await wait_until(lambda: redis.zcard("asynq:schedulers"), timeout=5, description="both shown")
        await wait_until(inspector.scheduler_entries, timeout=5, description="an entry shown")
        await other.stop()
        await wait_until(
            lambda: redis.zcard("asynq:schedulers"), timeout=5, description="the first is still shown"
        )
        (shown,) = await inspector.scheduler_entries()
        assert (shown.id, shown.spec, shown.task_type, shown.task_payload) == (
            "hourly",
            "@hourly",
            "t",
            b"{}",
        )
        assert list(shown.enqueue_options) == ['Queue("q")', "MaxRetry(3)", "Timeout(1m0s)"]
        assert shown.next_enqueue_time.seconds == TOP
        assert shown.prev_enqueue_time.seconds == -62135596800
        (key,) = [raw async for raw in redis.scan_iter("asynq:schedulers:*")]
        assert 0 < await redis.ttl(key) <= 20
    assert await inspector.scheduler_entries() == []
    assert not await redis.exists("asynq:schedulers")


async def test_stopping_keeps_history_and_state(redis: Redis) -> None:
    clock = Clock(TOP - 1)
    async with running(redis, clock, hourly()):
        await wait_until(lambda: redis.exists(SINCE), timeout=5, description="the entry is known")
        clock.now = TOP
        await wait_until(lambda: redis.exists(LAST), timeout=5, description="the run")
    assert await redis.exists(LAST, SINCE) == 2
    (event,) = await Inspector(redis).enqueue_events("hourly")
    assert (event.task_id, event.enqueue_time.seconds) == (f"cron:hourly:{TOP}", TOP)


async def test_history_keeps_a_thousand(redis: Redis) -> None:
    await redis.zadd("asynq:scheduler_history:hourly", {f"e{number}": number for number in range(1005)})
    await run_once(redis, TOP - 1, hourly())
    await run_once(redis, TOP, hourly())
    assert await redis.zcard("asynq:scheduler_history:hourly") == 1000


async def test_unchanged_entries_are_kept_alive_and_rewritten_after_a_flush(redis: Redis) -> None:
    scheduler = Scheduler(redis, [hourly()], clock=Clock(TOP - 1))
    await scheduler._turn()
    key = scheduler._view._keys.scheduler
    await redis.expire(key, 5)
    scheduler._next_beat = 0
    await scheduler._turn()
    assert await redis.ttl(key) > 15
    await redis.flushall()
    scheduler._next_beat = 0
    await scheduler._turn()
    raw: Any = await redis.lrange(key, 0, -1)
    assert [SchedulerEntry.FromString(one).id for one in raw] == ["hourly"]


async def test_prev_shows_the_last_run(redis: Redis) -> None:
    scheduler = Scheduler(redis, [hourly()], clock=Clock(TOP - 1))
    await scheduler._turn()
    await run_once(redis, TOP, hourly())
    (entry,) = scheduler._entries
    await entry.fire_due(TOP + 1)
    assert entry.describe(TOP + 1).prev_enqueue_time.seconds == TOP


async def test_a_redis_that_is_away_is_waited_for(redis_server: Any, redis_url: str) -> None:
    redis = open_redis(redis_url, socket_timeout=timedelta(seconds=1))
    clock = Clock(TOP - 1)
    await redis_server.stop()
    with capture_logs() as logs:
        async with running(redis, clock, hourly()):
            await wait_until(
                lambda: any(log["event"] == "定时调度暂时无法访问 Redis" for log in logs),
                timeout=5,
                description="the outage is noticed",
            )
            await redis_server.start()
            await wait_until(
                lambda: redis.execute_command("EXISTS", SINCE), timeout=10, description="the entry is known"
            )
            clock.now = TOP
            await wait_until(lambda: redis.execute_command("EXISTS", LAST), timeout=10, description="the run")
    await redis.aclose()


async def test_stopping_without_redis_ends(redis_server: Any, redis_url: str) -> None:
    redis = open_redis(redis_url, socket_timeout=timedelta(seconds=1))
    with capture_logs() as logs:
        async with running(redis, Clock(TOP - 1), hourly()):
            await wait_until(
                lambda: redis.execute_command("EXISTS", SINCE), timeout=5, description="the entry is known"
            )
            await redis_server.stop()
    assert "定时调度器的登记未能清除，将自行过期" in [log["event"] for log in logs]
    await redis.aclose()


async def test_start_and_stop_again(redis: Redis) -> None:
    scheduler = Scheduler(redis, [], clock=Clock(TOP))
    await scheduler.stop()
    for _ in range(20):
        await scheduler.start()
        with pytest.raises(RuntimeError):
            await scheduler.start()
        await scheduler.stop()


@pytest.mark.parametrize(
    ("entries", "error", "says"),
    [
        ([hourly(), hourly()], InvalidTaskError, "编号重复"),
        ([hourly(id=" ")], InvalidTaskError, "编号不能为空"),
        ([hourly(spec="never")], InvalidCronError, "never"),
        ([hourly(options=EnqueueOptions(task_id="x"))], InvalidTaskError, "不能指定任务编号"),
        ([hourly(task=Task(" "))], InvalidTaskError, "任务类型不能为空"),
    ],
)
async def test_entries_are_checked(
    redis: Redis, entries: list[CronEntry], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Scheduler(redis, entries)


class TestOverlap:
    """A run that comes while the task of the previous one has not ended."""

    ENTRY = hourly(overlap=OverlapPolicy.SKIP)

    async def second_run(self, redis: Redis, *entries: CronEntry) -> list[str]:
        with capture_logs() as logs:
            await run_once(redis, TOP + HOUR, *(entries or [self.ENTRY]))
        return [log["event"] for log in logs if "跳过" in log["event"]]

    async def first_run(self, redis: Redis) -> None:
        await run_once(redis, TOP - 1, self.ENTRY)
        await run_once(redis, TOP, self.ENTRY)
        assert await fired(redis) == [f"cron:hourly:{TOP}"]

    @pytest.mark.parametrize("work", ["pending", "active", "retry"])
    async def test_it_is_passed_over_and_settled(self, redis: Redis, work: str) -> None:
        await self.first_run(redis)
        broker = Broker(redis, clock=Clock(TOP))
        if work != "pending":
            (task,) = (await broker.dequeue("q", 1, owner="w")).tasks
            if work == "retry":
                await broker.ack("q", [Ack(AckKind.RETRY, task, at=TOP + 9 * HOUR)])
        assert await self.second_run(redis) == ["定时任务跳过：上一次运行尚未结束"]
        assert await redis.get(LAST) == str(TOP + HOUR).encode()
        assert not await redis.exists(f"asynq:{{q}}:t:cron:hourly:{TOP + HOUR}")

    @pytest.mark.parametrize("end", [AckKind.DONE, AckKind.COMPLETE, AckKind.ARCHIVE])
    async def test_it_happens_once_the_other_has_ended_however(self, redis: Redis, end: AckKind) -> None:
        await self.first_run(redis)
        broker = Broker(redis, clock=Clock(TOP))
        (task,) = (await broker.dequeue("q", 1, owner="w")).tasks
        await broker.ack("q", [Ack(end, task)])
        assert await self.second_run(redis) == []
        assert await fired(redis) == [f"cron:hourly:{TOP + HOUR}"]

    async def test_a_run_passed_over_does_not_hide_the_one_before_it(self, redis: Redis) -> None:
        await self.first_run(redis)
        await self.second_run(redis)
        await run_once(redis, TOP + 2 * HOUR, self.ENTRY)
        assert await fired(redis) == [f"cron:hourly:{TOP}"]

    async def test_it_is_allowed_unless_told_otherwise(self, redis: Redis) -> None:
        await self.first_run(redis)
        await self.second_run(redis, hourly())
        assert await fired(redis) == [f"cron:hourly:{TOP}", f"cron:hourly:{TOP + HOUR}"]


async def test_jitter_spreads_the_processing_not_the_runs(redis: Redis) -> None:
    entries = [
        CronEntry(f"e{n}", "@hourly", Task("t"), QUEUE, jitter=timedelta(minutes=10)) for n in range(40)
    ]
    await run_once(redis, TOP - 1, *entries)
    await run_once(redis, TOP, *entries)
    found: Any = await redis.zrange("asynq:{q}:scheduled", 0, -1, withscores=True)
    assert {raw.decode() for raw, _ in found} == {f"cron:e{n}:{TOP}" for n in range(40)}
    delays = [score - TOP for _, score in found]
    assert 0 <= min(delays) < 200 < max(delays) <= 600
    for wrong in (timedelta(seconds=-1), timedelta(seconds=1)):
        options = EnqueueOptions(process_at=datetime.now(UTC))
        with pytest.raises(InvalidTaskError, match="抖动"):
            Scheduler(redis, [CronEntry("x", "@hourly", Task("t"), options, jitter=wrong)])


class TestSpoiled:
    """Somebody wrote something foreign where an entry keeps its memory, or where its task belongs."""

    OTHER = CronEntry(id="other", spec="@hourly", task=Task("u"), options=EnqueueOptions(queue="r"))

    @pytest.mark.parametrize("key", ["last", "since", "run"])
    async def test_memory_of_a_wrong_type_counts_as_none_and_is_written_anew(
        self, redis: Redis, key: str
    ) -> None:
        entry = hourly(overlap=OverlapPolicy.SKIP)
        await run_once(redis, TOP - 1, entry)
        await redis.delete(f"asynq:{{q}}:cron:hourly:{key}")
        await redis.rpush(f"asynq:{{q}}:cron:hourly:{key}", "foreign")
        await run_once(redis, TOP - 1, entry)
        for _ in range(2):
            await run_once(redis, TOP, entry)
        assert await fired(redis) == [f"cron:hourly:{TOP}"]
        assert await redis.get(LAST) == str(TOP).encode()

    async def test_an_entry_that_cannot_fire_keeps_no_other_from_it_and_is_told_once(
        self, redis: Redis
    ) -> None:
        clock = Clock(TOP - 1)
        scheduler = Scheduler(redis, [hourly(), self.OTHER], clock=clock)
        await redis.set(PENDING, "foreign")
        with capture_logs() as logs:
            for clock.now in (TOP - 1, TOP, TOP + 1, TOP + HOUR):
                pause = await scheduler._turn()
                assert clock.now < TOP or pause > 0, "no hot loop over the spoiled one"
        assert [log["entry"] for log in logs if log["log_level"] == "error"] == ["hourly"]
        assert await redis.lrange("asynq:{r}:pending", 0, -1) == [
            f"cron:other:{TOP + HOUR}".encode(),
            f"cron:other:{TOP}".encode(),
        ]
        await redis.delete(PENDING)
        clock.now = TOP + HOUR + 1
        await scheduler._turn()
        assert await fired(redis) == [f"cron:hourly:{TOP + HOUR}"]
