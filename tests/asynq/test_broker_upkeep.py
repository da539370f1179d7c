from datetime import timedelta

import pytest
from redis.asyncio import Redis
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(redis: Redis, clock: Clock) -> Broker:
    return Broker(redis, clock=clock)


async def test_due_tasks_move_to_pending(redis: Redis, broker: Broker, clock: Clock) -> None:
    await wire.put(redis, "soon", options={"process_in": timedelta(seconds=10)})
    await wire.put(redis, "late", options={"process_in": timedelta(hours=1)})
    await wire.put(redis, "failed")
    (task,) = await wire.take(redis)
    await broker.ack(QUEUE, [Ack(AckKind.RETRY, task, at=int(NOW) + 5)])
    assert await broker.forward(QUEUE) == 0

    clock.now += 11

    assert await broker.forward(QUEUE) == 2
    assert await wire.ids(redis, "pending") == ["failed", "soon"]
    assert await wire.scores(redis, "scheduled") == {"late": int(NOW) + 3601}
    stored = await wire.fields(redis, "soon")
    assert stored["state"] == b"pending"
    assert stored["pending_since"] == str(int(clock.now * 1e9)).encode()


async def test_a_due_task_of_a_group_waits_for_its_group(redis: Redis, broker: Broker, clock: Clock) -> None:
    await wire.put(redis, "a", options={"process_in": timedelta(seconds=10), "group": "g1"})
    clock.now += 11
    assert await broker.forward(QUEUE) == 1
    assert await wire.scores(redis, "g:g1") == {"a": int(clock.now)}
    assert await redis.smembers(PREFIX + "groups") == {b"g1"}
    assert await wire.state(redis, "a") == "aggregating"
    assert await wire.ids(redis, "pending") == []


async def test_forwarding_goes_on_until_nothing_is_due(redis: Redis, broker: Broker, clock: Clock) -> None:
    options = EnqueueOptions(queue=QUEUE, process_in=timedelta(seconds=10))
    await Client(redis, clock=clock).enqueue_many([(Task("t"), options)] * 250)
    clock.now += 11
    assert await broker.forward(QUEUE) == 250
    assert await redis.llen(PREFIX + "pending") == 250


async def test_ghosts_are_dropped_when_due(redis: Redis, broker: Broker) -> None:
    await redis.zadd(PREFIX + "scheduled", {"gone": 1, "wrong": 1})
    await redis.set(PREFIX + "t:wrong", "x")
    assert await broker.forward(QUEUE) == 2
    assert await wire.ids(redis, "pending") == []
    assert await wire.scores(redis, "scheduled") == {}


async def test_an_active_task_without_lease_gets_one_that_ends_now(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    (task,) = await wire.take(redis)
    await redis.delete(PREFIX + "lease")

    report = await broker.repair_orphans(QUEUE)

    assert (report.leases_restored, report.total) == (1, 1)
    assert await wire.scores(redis, "lease") == {"a": int(NOW)}
    assert await broker.extend_leases(QUEUE, [task]) == []
    assert (await broker.repair_orphans(QUEUE)).total == 0


async def test_a_lease_without_active_entry_gets_it_back(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    await wire.take(redis)
    await redis.delete(PREFIX + "active")
    report = await broker.repair_orphans(QUEUE)
    assert (report.actives_restored, report.total) == (1, 1)
    assert await wire.ids(redis, "active") == ["a"]


async def test_entries_without_a_task_in_work_are_dropped(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a", "moved", "wrong")
    await wire.take(redis)
    await redis.hset(PREFIX + "t:moved", "state", "retry")
    await redis.delete(PREFIX + "t:wrong")
    await redis.set(PREFIX + "t:wrong", "x")
    await redis.lpush(PREFIX + "active", "gone")

    report = await broker.repair_orphans(QUEUE)

    assert (report.ghosts_dropped, report.leases_dropped, report.total) == (3, 2, 5)
    assert await wire.ids(redis, "active") == ["a"]
    assert set(await wire.scores(redis, "lease")) == {"a"}


async def test_an_id_twice_in_active_is_one_task(redis: Redis, broker: Broker) -> None:
    await wire.put(redis, "a")
    await wire.take(redis)
    await redis.lpush(PREFIX + "active", "a")
    assert (await broker.repair_orphans(QUEUE)).ghosts_dropped == 1
    assert await wire.ids(redis, "active") == ["a"]


async def test_lists_too_long_to_judge_are_left_alone(redis: Redis, broker: Broker) -> None:
    await redis.lpush(PREFIX + "active", *(f"gone{number}" for number in range(20_001)))
    assert (await broker.repair_orphans(QUEUE)).total == 0
    assert await redis.llen(PREFIX + "active") == 20_001


async def test_completed_tasks_go_when_their_retention_ends(
    redis: Redis, broker: Broker, clock: Clock
) -> None:
    await wire.put(redis, "a", "b", "c", options={"retention": timedelta(seconds=60)})
    tasks = await wire.take(redis)
    await broker.ack(QUEUE, [Ack(AckKind.COMPLETE, task) for task in tasks])
    lock = PREFIX + "unique:t:x"
    await redis.hset(PREFIX + "t:a", "unique_key", lock)
    await redis.set(lock, "a")
    assert await broker.delete_expired_completed(QUEUE) == 0

    clock.now += 61

    assert await broker.delete_expired_completed(QUEUE, limit=2) == 2
    assert await broker.delete_expired_completed(QUEUE, limit=2) == 1
    assert await wire.keys(redis) == set()


async def test_a_spoiled_group_keeps_nothing_else_from_being_forwarded(
    redis: Redis, broker: Broker, clock: Clock
) -> None:
    await wire.put(redis, "grouped", options={"process_in": timedelta(seconds=5), "group": "g1"})
    await wire.put(redis, "behind", options={"process_in": timedelta(seconds=6)})
    await redis.set(PREFIX + "g:g1", "foreign")
    clock.now += 11
    assert await broker.forward(QUEUE) == 2
    assert await wire.ids(redis, "pending") == ["behind"]
    assert await wire.scores(redis, "archived") == {"grouped": int(clock.now)}
    details = await Inspector(redis).task(QUEUE, "grouped")
    assert (details.state, details.quarantined) == (TaskState.ARCHIVED, "分组的键类型不对")
    assert await redis.get(PREFIX + "g:g1") == b"foreign"
