from datetime import date, timedelta

import pytest
from redis.asyncio import Redis
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.asynq_pb2 import SchedulerEntry, ServerInfo, WorkerInfo
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.inspector import Inspector, QueueInfo

DAY = "2027-01-15"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inspector(redis: Redis, clock: Clock) -> Inspector:
    return Inspector(redis, clock=clock)


async def test_the_figures_of_a_queue(redis: Redis, inspector: Inspector, clock: Clock) -> None:
    broker = Broker(redis, clock=clock)
    await wire.put(redis, "done", "completed", "retry", "archived", "active")
    tasks = await wire.take(redis)
    kinds = [AckKind.DONE, AckKind.COMPLETE, AckKind.RETRY, AckKind.ARCHIVE]
    acks = [Ack(kind, task, at=int(NOW) + 60) for kind, task in zip(kinds, tasks, strict=False)]
    await broker.ack(QUEUE, acks)
    await wire.put(redis, "p1", "p2")
    await wire.put(redis, "s", options={"process_in": timedelta(hours=1)})
    await wire.put(redis, "g1", options={"group": "x"})
    await wire.put(redis, "g2", options={"group": "y"})
    await broker.pause(QUEUE)
    await broker.register_queue("an empty one")
    clock.now += 12.5

    empty, info = await inspector.queues()

    assert info == QueueInfo(
        queue="q",
        pending=2,
        active=1,
        scheduled=1,
        retry=1,
        archived=1,
        completed=1,
        aggregating=2,
        paused=True,
        latency=timedelta(seconds=12.5),
        processed_today=4,
        failed_today=2,
        processed_total=4,
        failed_total=2,
        groups=2,
    )
    assert info.size == 9
    assert (empty.queue, empty.size, empty.paused, empty.latency) == ("an empty one", 0, False, timedelta(0))


async def test_a_damaged_queue_does_not_hide_the_others(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await redis.sadd("asynq:queues", "bad")
    for name in ("pending", "scheduled", "processed", "groups"):
        await redis.hset(f"asynq:{{bad}}:{name}", "x", "x")
    await redis.set("asynq:{bad}:failed", "garbage")
    bad, good = await inspector.queues()
    assert (bad.size, bad.processed_total, bad.failed_total) == (0, 0, 0)
    assert good.pending == 1


@pytest.mark.parametrize("since", [None, "garbage"])
async def test_without_a_time_there_is_no_latency(
    redis: Redis, inspector: Inspector, since: str | None
) -> None:
    await wire.put(redis, "a")
    await redis.hdel(PREFIX + "t:a", "pending_since")
    if since is not None:
        await redis.hset(PREFIX + "t:a", "pending_since", since)
    (info,) = await inspector.queues()
    assert info.latency == timedelta(0)


async def test_nothing_there(inspector: Inspector) -> None:
    assert await inspector.queues() == []
    assert await inspector.servers() == []
    assert await inspector.scheduler_entries() == []
    assert await inspector.enqueue_events("none") == []
    assert await inspector.history("none", days=0) == []


async def test_living_servers_with_their_workers(redis: Redis, inspector: Inspector, clock: Clock) -> None:
    broker = Broker(redis, clock=clock)
    one = ServerInfo(host="h", pid=1, server_id="one")
    two = ServerInfo(host="h", pid=2, server_id="two")
    await broker.write_server_state(one, [WorkerInfo(task_id="a")])
    await broker.write_server_state(two, [])
    await redis.zadd("asynq:servers", {"asynq:servers:{garbage}": NOW + 99, "asynq:servers:{gone}": NOW + 99})
    await redis.set("asynq:servers:{garbage}", b"\xff\xff")
    await redis.hset("asynq:workers:{h:2:two}", "x", b"\xff\xff")

    servers = await inspector.servers()

    assert [server.info for server in servers] == [one, two]
    assert [worker.task_id for worker in servers[0].workers] == ["a"]
    assert servers[1].workers == ()
    clock.now += 11
    assert [server.info.server_id for server in await inspector.servers()] == []


async def test_scheduler_entries_of_the_dead_are_not_shown(redis: Redis, inspector: Inspector) -> None:
    for key, expiry in (("asynq:schedulers:{a}", NOW + 10), ("asynq:schedulers:{b}", NOW - 10)):
        await redis.zadd("asynq:schedulers", {key: expiry})
        await redis.rpush(key, SchedulerEntry(id=key).SerializeToString(), b"\xff\xff")
    assert [entry.id for entry in await inspector.scheduler_entries()] == ["asynq:schedulers:{a}"]


async def test_what_a_queue_did_by_day(redis: Redis, inspector: Inspector) -> None:
    await redis.set(f"{PREFIX}processed:{DAY}", 5)
    await redis.set(f"{PREFIX}failed:{DAY}", 2)
    await redis.set(f"{PREFIX}processed:2027-01-14", 3)
    days = await inspector.history(QUEUE, days=2)
    assert [(day.day, day.processed, day.failed) for day in days] == [
        (date(2027, 1, 15), 5, 2),
        (date(2027, 1, 14), 3, 0),
    ]
