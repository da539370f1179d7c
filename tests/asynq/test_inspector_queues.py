"""Queues: figures, groups, pause, deletion to the last key."""

from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_errors import QueueNotEmptyError, QueueNotFoundError, QueuePauseError
from junhong_cmp.asynq.inspector_types import GroupInfo
from junhong_cmp.asynq.task import EnqueueOptions, Task

HOUR = timedelta(hours=1)


@pytest.fixture
def inspector(redis: Redis) -> Inspector:
    return Inspector(redis, clock=Clock())


async def fill(redis: Redis) -> None:
    """Put something of every kind into the queue, and leave nothing in work."""
    broker = Broker(redis, clock=Clock())
    await wire.put(redis, "done", "completed", "retry", "archived", options={"unique_for": None})
    tasks = await wire.take(redis)
    kinds = (AckKind.DONE, AckKind.COMPLETE, AckKind.RETRY, AckKind.ARCHIVE)
    await broker.ack(QUEUE, [Ack(kind, task, at=1) for kind, task in zip(kinds, tasks, strict=True)])
    await wire.put(redis, "pending", options={"unique_for": HOUR}, payload=b"p")
    await wire.put(redis, "scheduled", options={"unique_for": HOUR, "process_in": HOUR}, payload=b"s")
    await wire.put(redis, "group", options={"group": "g", "unique_for": HOUR}, payload=b"g")
    await redis.zadd(PREFIX + "g:g:set", {"x": 1})
    await redis.zadd(PREFIX + "aggregation_sets", {PREFIX + "g:g:set": 1})
    await redis.hset(PREFIX + "t:orphan", "msg", "x")
    await redis.set(PREFIX + "unique:t:orphan", "gone")
    await redis.set(PREFIX + "cron:entry:last", 1)
    await redis.zadd(PREFIX + "lease", {"left": 1})


async def test_one_queue(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a", "b")
    assert await inspector.queue(QUEUE) == (await inspector.queues())[0]
    with pytest.raises(QueueNotFoundError):
        await inspector.queue("other")


async def test_a_name_that_is_no_text_hides_no_other_queue(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await redis.sadd("asynq:queues", b"\xff\xfe")
    foreign, own = sorted(await inspector.queues(), key=lambda info: info.pending)
    assert (foreign.pending, own.queue, own.pending) == (0, QUEUE, 1)
    await inspector.delete_queue(QUEUE, force=True)
    assert await redis.smembers("asynq:queues") == {b"\xff\xfe"}


@pytest.mark.single_node("reads one server's statistics of commands")
async def test_figures_take_two_round_trips_however_many_queues(redis: Redis, inspector: Inspector) -> None:
    await Broker(redis).register_queue(*(f"q{number:03}" for number in range(300)))
    await inspector.queues()
    await redis.config_resetstat()
    assert len(await inspector.queues()) == 300
    stats = await redis.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 300
    assert "cmdstat_memory" not in str(stats)


async def test_groups(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "1", "2", options={"group": "b"})
    await wire.put(redis, "3", options={"group": "a"})
    assert await inspector.groups(QUEUE) == [GroupInfo("a", 1), GroupInfo("b", 2)]
    with pytest.raises(QueueNotFoundError):
        await inspector.groups("other")


async def test_many_groups_are_counted_outside_the_script(redis: Redis, inspector: Inspector) -> None:
    items = [(Task("t"), EnqueueOptions(queue=QUEUE, group=f"g{number}")) for number in range(1200)]
    await Client(redis).enqueue_many(items)
    info = await inspector.queue(QUEUE)
    assert (info.groups, info.aggregating) == (1200, 1200)


async def test_pause_and_unpause(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await inspector.pause_queue(QUEUE)
    assert await redis.get(PREFIX + "paused") == str(int(NOW)).encode()
    with pytest.raises(QueuePauseError, match="已处于暂停状态"):
        await inspector.pause_queue(QUEUE)
    assert await wire.take(redis) == []
    await inspector.unpause_queue(QUEUE)
    with pytest.raises(QueuePauseError, match="并未暂停"):
        await inspector.unpause_queue(QUEUE)
    assert len(await wire.take(redis)) == 1


async def test_delete_takes_every_key_and_no_other(redis: Redis, inspector: Inspector) -> None:
    neighbours = ("q2", "q}:x", "q*", "Q")
    for name in neighbours:
        await Client(redis).enqueue(Task("t"), EnqueueOptions(queue=name, task_id="n"))
    before = await wire.keys(redis)
    await fill(redis)
    assert await inspector.delete_queue(QUEUE, force=True) > 10
    assert await wire.keys(redis) == before
    assert {info.queue for info in await inspector.queues()} == set(neighbours)
    assert [key async for key in redis.scan_iter(PREFIX + "processed*")] == []


@pytest.mark.parametrize("queue", ["a*", "a[b]", "a\\b", "a?", "队列", "{a}"])
async def test_delete_of_a_queue_with_any_name(redis: Redis, inspector: Inspector, queue: str) -> None:
    client = Client(redis)
    for name in (queue, "ab", "axb"):
        await client.enqueue(Task("t"), EnqueueOptions(queue=name))
    await inspector.delete_queue(queue, force=True)
    assert [info.queue for info in await inspector.queues()] == ["ab", "axb"]
    assert len(await wire.keys(redis)) == 4


@pytest.mark.parametrize("kind", ["pending", "scheduled", "group"])
async def test_delete_refuses_a_queue_with_tasks(redis: Redis, inspector: Inspector, kind: str) -> None:
    kinds: dict[str, dict[str, Any]] = {"scheduled": {"process_in": HOUR}, "group": {"group": "g"}}
    options = kinds.get(kind, {})
    await wire.put(redis, "a", options=options)
    before = await wire.keys(redis)
    with pytest.raises(QueueNotEmptyError, match="强制删除") as refused:
        await inspector.delete_queue(QUEUE)
    assert (refused.value.active, refused.value.others) == (0, 1)
    assert await wire.keys(redis) == before


async def test_delete_refuses_a_queue_in_work_even_by_force(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await wire.take(redis)
    before = await wire.keys(redis)
    with pytest.raises(QueueNotEmptyError, match="1 个处理中"):
        await inspector.delete_queue(QUEUE, force=True)
    await redis.delete(PREFIX + "active")
    await redis.zadd(PREFIX + "aggregation_sets", {PREFIX + "g:g:set": NOW + 60})
    with pytest.raises(QueueNotEmptyError):
        await inspector.delete_queue(QUEUE, force=True)
    assert await wire.keys(redis) == before - {PREFIX + "active"} | {PREFIX + "aggregation_sets"}


async def test_delete_of_an_empty_queue_with_history(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    (task,) = await wire.take(redis)
    await Broker(redis, clock=Clock()).ack(QUEUE, [Ack(AckKind.DONE, task)])
    await inspector.delete_queue(QUEUE)
    assert [key async for key in redis.scan_iter("*")] == []
    with pytest.raises(QueueNotFoundError):
        await inspector.delete_queue(QUEUE)


async def test_delete_goes_on_where_it_was_interrupted(redis: Redis, inspector: Inspector) -> None:
    await fill(redis)
    await redis.set(PREFIX + "paused", 1)
    for name in ("pending", "scheduled", "retry"):
        await redis.delete(PREFIX + name)
    await inspector.delete_queue(QUEUE, force=True)
    assert [key async for key in redis.scan_iter("*")] == []
    await wire.put(redis, "a")
    assert len(await wire.take(redis)) == 1


@pytest.mark.single_node("its point")
async def test_a_slot_for_every_queue_but_no_nodes_without_a_cluster(inspector: Inspector) -> None:
    assert inspector.cluster_key_slot("q") == 11958
    assert await inspector.cluster_nodes("q") == []
