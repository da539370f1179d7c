"""Ours against what the real Asynq left in Redis after each further transition, and ours going on there."""

import time
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.asynq.golden_states import assert_same, dump, moved_to, recorded, restore, step_named, task_of
from tests.asynq.wire import Clock

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, TaskMessage, WorkerInfo
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind, AckOutcome, LeasedTask
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector

HASH = "asynq:{golden}:t:id"
QUEUE = "golden"
TASK_TIMES = ("last_failed_at", "completed_at")


def start_clock(name: str) -> Clock:
    return Clock(float(step_named(name)["at"]))


async def lease(redis: Redis, name: str, clock: Clock) -> LeasedTask:
    """Enqueue the task of a step and take it."""
    await Client(redis, clock=clock).enqueue(*task_of(step_named(name)["case"]))
    (task,) = (await Broker(redis, clock=clock).dequeue(QUEUE, 1, owner="w")).tasks
    return task


async def compare(redis: Redis, name: str, clock: Clock, *, more: frozenset[bytes] = frozenset()) -> None:
    """Compare the database, and the message in it, with what Go left."""
    step = step_named(name)
    theirs = moved_to(clock.now, recorded(step), step["at"])
    ours = await dump(redis)
    assert_same(ours, theirs, more=more)
    if HASH not in theirs:
        return
    messages = [TaskMessage.FromString(found[HASH]["fields"][b"msg"]) for found in (ours, theirs)]
    for field in TASK_TIMES:
        mine, original = (getattr(message, field) for message in messages)
        shift = int(clock.now) - step["at"] if original else 0
        assert mine == pytest.approx(original + shift, abs=2)
        for message in messages:
            message.ClearField(field)
    assert messages[0].SerializeToString(deterministic=True) == messages[1].SerializeToString(
        deterministic=True
    )


async def test_requeue(redis: Redis) -> None:
    clock = start_clock("requeue")
    task = await lease(redis, "requeue", clock)
    await Broker(redis, clock=clock).ack(QUEUE, [Ack(AckKind.REQUEUE, task)])
    # Go forgets since when a requeued task waits, and so shows no latency for it.
    await compare(redis, "requeue", clock, more=frozenset({b"pending_since"}))


async def test_retry_that_is_no_failure(redis: Redis) -> None:
    clock = start_clock("no failure")
    task = await lease(redis, "no failure", clock)
    ack = Ack(AckKind.RETRY, task, error="as ordered", is_failure=False, at=int(clock.now) + 3600)
    await Broker(redis, clock=clock).ack(QUEUE, [ack])
    await compare(redis, "no failure", clock)


async def test_pause(redis: Redis) -> None:
    clock = start_clock("pause")
    await Client(redis, clock=clock).enqueue(*task_of(step_named("pause")["case"]))
    assert await Broker(redis, clock=clock).pause(QUEUE)
    await compare(redis, "pause", clock)


async def test_forward_of_a_scheduled_task(redis: Redis) -> None:
    clock = start_clock("forward scheduled")
    step = step_named("forward scheduled")
    due = {"process_at": step["at"] - 1}
    clock.now -= 2
    await Client(redis, clock=clock).enqueue(*task_of(step["case"] | due))
    clock.now += 2
    assert await Broker(redis, clock=clock).forward(QUEUE) == 1
    await compare(redis, "forward scheduled", clock)


async def test_forward_of_a_retry(redis: Redis) -> None:
    clock = Clock(time.time())  # the day's counters expire by the server's clock
    task = await lease(redis, "forward retry", clock)
    broker = Broker(redis, clock=clock)
    await broker.ack(QUEUE, [Ack(AckKind.RETRY, task, error="as ordered", at=int(clock.now))])
    assert await broker.forward(QUEUE) == 1
    await compare(redis, "forward retry", clock)


async def test_recovery_of_a_task_that_go_was_working_on(redis: Redis) -> None:
    """The state is Go's own; ours finds the lapsed lease in it and moves the task as Go's recoverer would."""
    clock = Clock(time.time())
    await lease(redis, "lease expired", Clock(clock.now - 100))
    broker = Broker(redis, clock=clock)
    (expired,) = await broker.expired_leases(QUEUE, clock.now - 30)
    ack = Ack(AckKind.RETRY, expired, error="asynq: task lease expired", at=int(clock.now) + 3600)
    assert await broker.ack(QUEUE, [ack]) == [AckOutcome.OK]
    await compare(redis, "lease expired", clock)


async def test_end_of_the_retention(redis: Redis) -> None:
    clock = Clock(time.time())
    task = await lease(redis, "retention over", clock)
    broker = Broker(redis, clock=clock)
    await broker.ack(QUEUE, [Ack(AckKind.COMPLETE, task)])
    clock.now += 2
    assert await broker.delete_expired_completed(QUEUE) == 1
    await compare(redis, "retention over", clock)


async def test_a_working_server_with_its_worker_and_lease(redis: Redis) -> None:
    clock = start_clock("active")
    theirs = recorded(step_named("active"))
    (server_key,) = (key for key in theirs if key.startswith("asynq:servers:"))
    (workers_key,) = (key for key in theirs if key.startswith("asynq:workers:"))
    raw_server, raw_worker = theirs[server_key]["value"], theirs[workers_key]["fields"][b"id"]
    server, worker = ServerInfo.FromString(raw_server), WorkerInfo.FromString(raw_worker)
    task = await lease(redis, "active", clock)
    broker = Broker(redis, clock=clock)
    clock.now += 5  # one of Go's heartbeats
    assert await broker.extend_leases(QUEUE, [task]) == []
    await broker.write_server_state(server, [worker])

    ours = await dump(redis)
    assert_same(ours, theirs, more=frozenset({b"owner"}))
    assert ours[server_key]["value"] == raw_server
    assert ours[workers_key]["fields"] == {b"id": raw_worker}
    assert (worker.host, worker.pid, worker.server_id) == (server.host, server.pid, server.server_id)
    assert (worker.task_type, worker.task_payload, worker.queue) == ("golden:active", b"active", QUEUE)
    assert worker.deadline.seconds - worker.start_time.seconds == pytest.approx(90, abs=1)
    assert task.message.SerializeToString(deterministic=True) == theirs[HASH]["fields"][b"msg"]


async def test_we_read_the_state_of_a_working_server_of_go(redis: Redis) -> None:
    step = step_named("active")
    await restore(redis, recorded(step))
    clock = Clock(float(step["at"]))
    (seen,) = await Inspector(redis, clock=clock).servers()
    assert (seen.info.status, seen.info.active_worker_count, dict(seen.info.queues)) == (
        "active",
        1,
        {QUEUE: 1},
    )
    assert [worker.task_id for worker in seen.workers] == ["id"]
    clock.now += 100
    (task,) = await Broker(redis, clock=clock).expired_leases(QUEUE, clock.now - 30)
    assert await Broker(redis, clock=clock).ack(QUEUE, [Ack(AckKind.DONE, task)]) == [AckOutcome.OK]
    left: Any = await redis.keys("asynq:{golden}:*")
    assert {key.decode().partition("}:")[2].partition(":")[0] for key in left} == {"processed"}


@pytest.mark.parametrize("name", ["requeue", "forward scheduled", "forward retry", "aggregated"])
async def test_we_take_what_go_left_pending(redis: Redis, name: str) -> None:
    step = step_named(name)
    theirs = recorded(step)
    await restore(redis, theirs)
    broker = Broker(redis, clock=Clock(float(step["at"])))
    (task,) = (await broker.dequeue(QUEUE, 2, owner="w")).tasks
    (stored,) = (one["fields"][b"msg"] for one in theirs.values() if one["kind"] == "hash")
    assert task.message.SerializeToString(deterministic=True) == stored
    assert await broker.ack(QUEUE, [Ack(AckKind.DONE, task)]) == [AckOutcome.OK]
    assert not await redis.keys("asynq:{golden}:unique:*")


async def test_we_respect_a_pause_of_go(redis: Redis) -> None:
    step = step_named("pause")
    await restore(redis, recorded(step))
    broker = Broker(redis, clock=Clock(float(step["at"])))
    assert (await broker.dequeue(QUEUE, 1, owner="w")).paused
    assert await broker.unpause(QUEUE)
    assert len((await broker.dequeue(QUEUE, 1, owner="w")).tasks) == 1
