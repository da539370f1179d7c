"""One part of the measurement, in a process of its own, as the leader would run it."""

import asyncio
import json
import statistics
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.initializer import PollingInitializer
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.reconciler import PollingReconciler
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.tasks import POLLING_QUEUE, POLLING_TASK_TYPES, PollPayload
from leader_bench.readings import ServerMeter, ServerTimes, Stopwatch, peak_rss_mib
from leader_bench.scripts import ScriptRounds

_QUEUE: Final = queue_keys(POLLING_QUEUE)
_VISIBILITY: Final = timedelta(minutes=10)
_UNBOUNDED: Final = PollingSettings(
    high_water=10**8, low_water=10**7, unproven_backlog=10**8, visibility=_VISIBILITY
)
_LOOK_EVERY_S: Final = 0.05
_HEAD_START_MS: Final = 5000
_SETTLE_S: Final = 3.0
_SAMPLE: Final = 1000


@dataclass(slots=True)
class Leader:
    """The deciding side of a worker on given servers, and what measures it."""

    redis: Any
    pool: Pool
    config: PollingConfigManager
    redis_pid: int
    postgres_pid: int
    queue: PollingQueueManager = field(init=False)
    times: ServerTimes = field(init=False)
    watch: Stopwatch = field(init=False)

    def __post_init__(self) -> None:
        """Put the parts together."""
        self.queue = PollingQueueManager(self.redis)
        self.times = ServerTimes(self.redis)
        self.watch = Stopwatch(self.redis, self.postgres_pid)

    def scheduler(self) -> PollingScheduler:
        """Return a scheduler that nothing holds back but itself."""
        return PollingScheduler(
            pool=self.pool,
            redis=self.redis,
            queue_manager=self.queue,
            config_manager=self.config,
            concurrency=AccountConcurrency(self.redis),
            client=Client(self.redis),
            stats=PollStats(self.pool),
            has_gateway=True,
            settings=_UNBOUNDED,
        )

    async def add(self, cards: int, first_due_ms: int, spread_ms: int) -> None:
        """Add cards over all shards, due one after the other over a span of time."""
        shards = self.queue.shards(self.config.snapshot.accounts)
        places: defaultdict[ShardId, list[int]] = defaultdict(list)
        for number in range(cards):
            places[shards[number % len(shards)]] += (first_due_ms + number * spread_ms // cards, number + 1)
        await self.queue.add_places(places)

    async def wait_for_pending(self, polls: int) -> None:
        """Return when so many polls are in the task queue."""
        while await self.redis.llen(_QUEUE.pending) < polls:  # noqa: ASYNC110 - Redis tells no event
            await asyncio.sleep(_LOOK_EVERY_S)


async def initialise(leader: Leader, cards: int) -> dict[str, float]:
    """Measure a full initialisation of an empty Redis, then a comparison that finds nothing to do."""
    initializer = PollingInitializer(leader.pool, leader.queue, leader.config)
    await leader.watch.start()
    walk = await initializer.initialise()
    figures = {f"init_{name}": value for name, value in (await leader.watch.stop()).items()}
    if (walk.cards, walk.added) != (cards, cards * len(POLLING_TASK_TYPES)):
        raise AssertionError(walk)
    figures["init_rss_mb"] = round(peak_rss_mib(), 1)
    reconciler = PollingReconciler(leader.pool, leader.queue, leader.config, PollingSettings())
    await leader.watch.start()
    report = await reconciler.reconcile()
    figures |= {f"reconcile_{name}": value for name, value in (await leader.watch.stop()).items()}
    if report.added or report.removed:
        raise AssertionError(report)
    figures["reconcile_rss_mb"] = round(peak_rss_mib(), 1)
    return figures


async def idle(leader: Leader, seconds: int) -> dict[str, float]:
    """Measure what a scheduler costs that has nothing due: all shards are filled, all cards wait."""
    scheduler = leader.scheduler()
    await leader.add(100_000, await leader.queue.now_ms() + 86_400_000, 3_600_000)
    await scheduler.start()
    await asyncio.sleep(_SETTLE_S)  # the first round asks every shard once
    before = await leader.redis.info("commandstats")
    await leader.watch.start()
    await asyncio.sleep(seconds)
    used = await leader.watch.stop()
    after = await leader.redis.info("commandstats")
    await scheduler.stop()
    calls = sum(row["calls"] for row in after.values()) - sum(row["calls"] for row in before.values())
    return {
        "shards": len(leader.queue.shards(leader.config.snapshot.accounts)),
        "idle_commands_per_s": round(calls / used["wall_s"], 1),
        "idle_cpu_percent": round(used["cpu_s"] / used["wall_s"] * 100, 2),
    }


async def claim(leader: Leader, cards: int) -> dict[str, float]:
    """Measure how fast overdue cards become tasks: on one core that Redis shares, and by the clock."""
    await leader.add(cards, await leader.queue.now_ms() - 60_000, 50_000)
    scheduler = leader.scheduler()
    await leader.watch.start()
    await scheduler.start()
    await leader.wait_for_pending(cards)
    used = await leader.watch.stop()
    await scheduler.stop()
    return {
        "claim_per_s": round(cards / (used["cpu_s"] + used["redis_cpu_s"])),
        "claim_per_s_leader_alone": round(cards / used["cpu_s"]),
        "claim_per_s_by_the_clock": round(cards / used["wall_s"]),
    }


async def lag(leader: Leader, per_second: int, seconds: int) -> dict[str, float]:
    """Measure how long after its due time a card is in the task queue, at a steady rate of due cards."""
    cards = per_second * seconds
    first_due_ms = await leader.queue.now_ms() + _HEAD_START_MS
    await leader.add(cards, first_due_ms, seconds * 1000)
    scheduler = leader.scheduler()
    await leader.watch.start()
    await scheduler.start()
    await leader.wait_for_pending(cards)
    used = await leader.watch.stop()
    await scheduler.stop()
    lags = sorted(await _lags_ms(leader.redis))
    return {
        "due_lag_p50_ms": round(statistics.median(lags), 1),
        "due_lag_p99_ms": round(lags[int(len(lags) * 0.99)], 1),
        "due_lag_max_ms": round(lags[-1], 1),
        "due_per_s": per_second,
        "due_cpu_percent": round(used["cpu_s"] / seconds * 100, 1),
    }


async def scripts(leader: Leader, runs: int) -> dict[str, Any]:
    """Measure each script alone with the largest batch it is ever given, on a shard of many cards."""
    await leader.times.begin(slower_than=timedelta(0))
    meter = ServerMeter(leader.redis_pid, leader.times)
    rounds = ScriptRounds(leader.redis, leader.queue, leader.config.snapshot.accounts, meter)
    await rounds.prepare()
    for _ in range(runs):
        await rounds.run()
    await rounds.close()
    return meter.summary()


_PARTS: Final[dict[str, Callable[..., Awaitable[dict[str, Any]]]]] = {
    "initialise": initialise,
    "idle": idle,
    "claim": claim,
    "lag": lag,
    "scripts": scripts,
}


async def _lags_ms(redis: Any) -> list[float]:
    """Compare the due time each task carries with the instant at which it became pending."""
    lags = []
    ids = await redis.lrange(_QUEUE.pending, 0, -1)
    for start in range(0, len(ids), _SAMPLE):
        pipe = redis.pipeline(transaction=False)
        for task_id in ids[start : start + _SAMPLE]:
            pipe.hmget(_QUEUE.task(task_id.decode()), "msg", "pending_since")
        for message, since in await pipe.execute():
            lags.append(int(since) / 1e6 - _due_ms(message))
    return lags


def _due_ms(message: bytes) -> int:
    payload = message[message.index(b"{") : message.index(b"}") + 1]
    return PollPayload.decode(payload).due


async def run(part: str, redis_url: str, dsn: str, numbers: list[int]) -> None:
    """Run one part on empty shards and print its figures as one line of JSON."""
    redis_pid, postgres_pid, *sizes = numbers
    redis: Any = open_redis(redis_url)
    pool = await open_pool(dsn, max_size=4)
    config = PollingConfigManager(pool, dsn)
    await config.refresh()
    await redis.flushall()
    leader = Leader(redis, pool, config, redis_pid, postgres_pid)
    await leader.times.begin()
    figures = await _PARTS[part](leader, *sizes)
    if part != "scripts":  # it reads the server's log itself
        figures |= await leader.times.summary()
    print(json.dumps(figures))
    await leader.queue.close()
    await pool.close()
    await redis.aclose()
