"""Run, archive, delete and update, one task and many, against a real Redis as the keys lie."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.errors import DuplicateTaskError, PayloadTooLargeError
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_errors import (
    QueueNotFoundError,
    TaskNotFoundError,
    TaskStateError,
    UnsupportedStateError,
)
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.states import TaskState

HOUR = timedelta(hours=1)
UNIQUE = {"unique_for": HOUR}
PENDING_SINCE = str(int(NOW * 1e9)).encode()
STATES = [state for state in TaskState if state is not TaskState.ACTIVE]


@pytest.fixture
def inspector(redis: Redis) -> Inspector:
    return Inspector(redis, clock=Clock())


async def put_in(redis: Redis, state: TaskState, *task_ids: str) -> None:
    """Bring tasks, each holding a unique lock, into a state by the ways tasks go."""
    broker = Broker(redis, clock=Clock())
    for task_id in task_ids:
        options: dict[str, Any] = {**UNIQUE}
        if state is TaskState.SCHEDULED:
            options["process_in"] = HOUR
        if state is TaskState.AGGREGATING:
            options["group"] = "g"
        if state is TaskState.COMPLETED:
            options["retention"] = HOUR
        await wire.put(redis, task_id, options=options, payload=task_id.encode())
        kind = {
            TaskState.RETRY: AckKind.RETRY,
            TaskState.ARCHIVED: AckKind.ARCHIVE,
            TaskState.COMPLETED: AckKind.COMPLETE,
        }.get(state)
        if kind is not None or state is TaskState.ACTIVE:
            (task,) = await wire.take(redis)
            if kind is not None:
                await broker.ack(QUEUE, [Ack(kind, task, error="boom", at=int(NOW) + 60)])


async def place_of(redis: Redis, task_id: str) -> set[str]:
    """The names of all lists and sets that hold the id."""
    found = set()
    for name in ("pending", "active"):
        if task_id in await wire.ids(redis, name):
            found.add(name)
    for name in ("lease", "scheduled", "retry", "archived", "completed", "g:g"):
        if task_id in await wire.scores(redis, name):
            found.add(name)
    return found


async def locks(redis: Redis) -> int:
    return len([key for key in await wire.keys(redis) if ":unique:" in key])


@pytest.mark.parametrize("state", [s for s in STATES if s is not TaskState.PENDING])
async def test_run_one(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a")
    await inspector.run_task(QUEUE, "a")
    assert await place_of(redis, "a") == {"pending"}
    fields = await wire.fields(redis, "a")
    assert (fields["state"], fields["pending_since"]) == (b"pending", PENDING_SINCE)
    assert await redis.smembers(PREFIX + "groups") == set()
    (task,) = await wire.take(redis)
    assert task.message.id == "a"


@pytest.mark.parametrize("state", [s for s in STATES if s is not TaskState.ARCHIVED])
async def test_archive_one(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a")
    await inspector.archive_task(QUEUE, "a")
    assert await place_of(redis, "a") == {"archived"}
    fields = await wire.fields(redis, "a")
    assert fields["state"] == b"archived"
    assert "pending_since" not in fields
    assert await wire.scores(redis, "archived") == {"a": int(NOW)}


@pytest.mark.parametrize("state", STATES)
async def test_delete_one_with_its_lock(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a")
    await inspector.delete_task(QUEUE, "a")
    assert await wire.keys(redis) == set()


@pytest.mark.parametrize("operation", ["run_task", "archive_task", "delete_task"])
async def test_what_a_worker_has_is_left_alone(redis: Redis, inspector: Inspector, operation: str) -> None:
    await put_in(redis, TaskState.ACTIVE, "a")
    await put_in(redis, TaskState.AGGREGATING, "b")
    await redis.rename(PREFIX + "g:g", PREFIX + "g:g:set")
    await redis.zadd(PREFIX + "aggregation_sets", {PREFIX + "g:g:set": NOW + 60})
    for task_id in ("a", "b"):
        before = await wire.fields(redis, task_id)
        with pytest.raises(TaskStateError, match="正在处理中"):
            await getattr(inspector, operation)(QUEUE, task_id)
        assert await wire.fields(redis, task_id) == before
    assert await place_of(redis, "a") == {"active", "lease"}


async def test_what_is_there_already_is_told(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.PENDING, "a")
    with pytest.raises(TaskStateError, match="已在待处理中") as refused:
        await inspector.run_task(QUEUE, "a")
    assert refused.value.state is TaskState.PENDING
    await inspector.archive_task(QUEUE, "a")
    with pytest.raises(TaskStateError, match="已归档"):
        await inspector.archive_task(QUEUE, "a")


@pytest.mark.parametrize("operation", ["run_task", "archive_task", "delete_task"])
async def test_there_is_no_such_task_or_queue(redis: Redis, inspector: Inspector, operation: str) -> None:
    await wire.put(redis, "a")
    with pytest.raises(TaskNotFoundError, match="编号 none"):
        await getattr(inspector, operation)(QUEUE, "none")
    with pytest.raises(QueueNotFoundError, match="other"):
        await getattr(inspector, operation)("other", "a")


@pytest.mark.parametrize("state", list(TaskState))
async def test_a_task_no_place_holds_is_still_in_reach(
    redis: Redis, inspector: Inspector, state: TaskState
) -> None:
    await put_in(redis, state, "a", "b")
    for name in ("pending", "active", "lease", "scheduled", "retry", "archived", "completed", "g:g"):
        await redis.delete(PREFIX + name)
    await inspector.run_task(QUEUE, "a")
    assert await place_of(redis, "a") == {"pending"}
    await inspector.delete_task(QUEUE, "b")
    assert await wire.fields(redis, "b") == {}


async def test_the_lock_of_a_group_task_that_go_enqueued_is_freed(redis: Redis, inspector: Inspector) -> None:
    """Go names the lock in the message only; a lock meanwhile held by another stays."""
    await put_in(redis, TaskState.AGGREGATING, "a", "b", "c")
    for task_id in ("a", "b", "c"):
        await redis.hdel(f"{PREFIX}t:{task_id}", "unique_key")
    await redis.set(queue_keys(QUEUE).unique("t", b"b"), "another")
    await inspector.delete_task(QUEUE, "a")
    await inspector.delete_all(QUEUE, TaskState.AGGREGATING, group="g")
    assert await wire.keys(redis) == {queue_keys(QUEUE).unique("t", b"b")}


async def test_a_stub_without_message_can_be_deleted_only(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "x")
    await redis.hset(PREFIX + "t:stub", "state", "active")
    with pytest.raises(TaskNotFoundError):
        await inspector.run_task(QUEUE, "stub")
    await inspector.delete_task(QUEUE, "stub")
    assert not await redis.exists(PREFIX + "t:stub")


Bulk = Callable[[Inspector, TaskState], Awaitable[Any]]
RUN_ALL: Bulk = lambda inspector, state: inspector.run_all(QUEUE, state, group="g")  # noqa: E731 - a table of calls
ARCHIVE_ALL: Bulk = lambda inspector, state: inspector.archive_all(QUEUE, state, group="g")  # noqa: E731 - as above
DELETE_ALL: Bulk = lambda inspector, state: inspector.delete_all(QUEUE, state, group="g")  # noqa: E731 - as above


@pytest.mark.parametrize(
    "state", [TaskState.SCHEDULED, TaskState.RETRY, TaskState.ARCHIVED, TaskState.AGGREGATING]
)
async def test_run_all(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a", "b", "c")
    assert (await inspector.run_all(QUEUE, state, group="g")).done == 3
    assert await wire.ids(redis, "pending") == ["c", "b", "a"]
    for task_id in ("a", "b", "c"):
        assert await place_of(redis, task_id) == {"pending"}
        fields = await wire.fields(redis, task_id)
        assert (fields["state"], fields["pending_since"]) == (b"pending", PENDING_SINCE)
    assert await redis.smembers(PREFIX + "groups") == set()


@pytest.mark.parametrize(
    "state", [TaskState.PENDING, TaskState.SCHEDULED, TaskState.RETRY, TaskState.AGGREGATING]
)
async def test_archive_all(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a", "b", "c")
    assert (await inspector.archive_all(QUEUE, state, group="g")).done == 3
    for task_id in ("a", "b", "c"):
        assert await place_of(redis, task_id) == {"archived"}
        assert await wire.state(redis, task_id) == "archived"


@pytest.mark.parametrize("state", STATES)
async def test_delete_all_with_their_locks(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a", "b", "c")
    assert (await inspector.delete_all(QUEUE, state, group="g")).done == 3
    assert await wire.keys(redis) == set()


@pytest.mark.parametrize(
    ("bulk", "state"),
    [
        (RUN_ALL, TaskState.PENDING),
        (RUN_ALL, TaskState.COMPLETED),
        (RUN_ALL, TaskState.ACTIVE),
        (ARCHIVE_ALL, TaskState.ARCHIVED),
        (ARCHIVE_ALL, TaskState.COMPLETED),
        (ARCHIVE_ALL, TaskState.ACTIVE),
        (DELETE_ALL, TaskState.ACTIVE),
    ],
)
async def test_bulk_operations_go_does_not_know_either(
    redis: Redis, inspector: Inspector, bulk: Bulk, state: TaskState
) -> None:
    await wire.put(redis, "a")
    with pytest.raises(UnsupportedStateError, match=state.value):
        await bulk(inspector, state)


async def test_another_group_is_left_alone(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.AGGREGATING, "a")
    await wire.put(redis, "b", options={"group": "other"})
    assert (await inspector.delete_all(QUEUE, TaskState.AGGREGATING, group="other")).done == 1
    assert await place_of(redis, "a") == {"g:g"}
    assert await redis.smembers(PREFIX + "groups") == {b"g"}


async def test_large_sets_go_in_steps(redis: Redis, inspector: Inspector) -> None:
    names = [f"{number:04}" for number in range(1050)]
    await wire.put(redis, *names)
    assert (await inspector.archive_all(QUEUE, TaskState.PENDING)).done == 1050
    assert (await inspector.run_all(QUEUE, TaskState.ARCHIVED)).done == 1050
    assert await wire.ids(redis, "pending") == names[::-1]
    assert (await inspector.delete_all(QUEUE, TaskState.PENDING)).done == 1050
    assert await wire.keys(redis) == set()


@pytest.mark.single_node("reads one server's statistics of commands")
async def test_no_step_is_long(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.SCHEDULED, *(str(number) for number in range(2000)))
    await inspector.archive_all(QUEUE, TaskState.RETRY)
    await redis.config_resetstat()
    await inspector.archive_all(QUEUE, TaskState.SCHEDULED)
    await inspector.delete_all(QUEUE, TaskState.ARCHIVED)
    scripts = (await redis.info("commandstats"))["cmdstat_evalsha"]
    assert scripts["calls"] == 2 * 2000 / 100
    assert scripts["usec_per_call"] < 5_000


@pytest.mark.parametrize("name", ["pending", "scheduled", "g:g"])
async def test_ids_without_a_task_are_dropped_and_foreign_entries_passed_over(
    redis: Redis, inspector: Inspector, name: str
) -> None:
    state = {"pending": TaskState.PENDING, "scheduled": TaskState.SCHEDULED}.get(name, TaskState.AGGREGATING)
    await put_in(redis, state, "a", "b")
    if name == "pending":
        await redis.rpush(PREFIX + name, "ghost")
        await redis.hset(PREFIX + "t:b", "state", "retry")
    else:
        await put_in(redis, TaskState.ARCHIVED, "elsewhere")
        await redis.zadd(PREFIX + name, {"ghost": 1, "elsewhere": 2})
    report = await inspector.delete_all(QUEUE, state, group="g")
    expected = (1, 1, 1) if name == "pending" else (2, 1, 1)
    assert (report.done, report.ghosts, report.left) == expected
    left = "b" if name == "pending" else "elsewhere"
    assert name in await place_of(redis, left)


async def test_the_archive_is_kept_within_its_size(redis: Redis) -> None:
    clock = Clock()
    inspector = Inspector(redis, archive=ArchiveLimits(3, timedelta(days=1)), clock=clock)
    await put_in(redis, TaskState.ARCHIVED, "old")
    clock.now += 10
    await put_in(redis, TaskState.SCHEDULED, "a", "b", "c")
    with capture_logs() as logs:
        report = await inspector.archive_all(QUEUE, TaskState.SCHEDULED)
    assert (report.done, report.trimmed) == (3, 1)
    assert set(await wire.scores(redis, "archived")) == {"a", "b", "c"}
    assert await wire.fields(redis, "old") == {}
    assert await locks(redis) == 3
    (record,) = logs
    assert record["event"] == "归档超出上限，最旧的任务已删除"
    assert (record["queue"], record["trimmed"], record["log_level"]) == (QUEUE, 1, "warning")


async def test_the_archive_is_kept_within_its_age(redis: Redis) -> None:
    clock = Clock()
    inspector = Inspector(redis, archive=ArchiveLimits(100, timedelta(days=1)), clock=clock)
    await put_in(redis, TaskState.ARCHIVED, "old")
    await put_in(redis, TaskState.PENDING, "a")
    clock.now += timedelta(days=1).total_seconds() + 1
    with capture_logs() as logs:
        await inspector.archive_task(QUEUE, "a")
    assert set(await wire.scores(redis, "archived")) == {"a"}
    assert await wire.fields(redis, "old") == {}
    assert logs[0]["trimmed"] == 1


async def test_workers_and_operators_never_share_a_task(redis: Redis) -> None:
    await wire.put(redis, *(str(number) for number in range(600)))
    inspector = Inspector(redis, clock=Clock())
    report, taken = await asyncio.gather(
        inspector.delete_all(QUEUE, TaskState.PENDING), wire.take(redis, 200)
    )
    assert report.done + len(taken) == 600
    assert len([key for key in await wire.keys(redis) if key.startswith(PREFIX + "t:")]) == len(taken)


async def test_update_moves_the_lock_with_the_payload(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.SCHEDULED, "a")
    keys = queue_keys(QUEUE)
    old, new = keys.unique("t", b"a"), keys.unique("t", b"new")
    left = await redis.ttl(old)
    await inspector.update_task_payload(QUEUE, "a", b"new")
    fields = await wire.fields(redis, "a")
    message = TaskMessage.FromString(fields["msg"])
    assert (message.payload, message.unique_key, fields["unique_key"]) == (b"new", new, new.encode())
    assert await redis.get(old) is None
    assert await redis.get(new) == b"a"
    assert left - 5 <= await redis.ttl(new) <= left
    assert await wire.scores(redis, "scheduled") == {"a": int(NOW) + 3601}
    await inspector.delete_task(QUEUE, "a")
    assert await locks(redis) == 0


async def test_update_to_a_payload_another_task_has(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.SCHEDULED, "a", "b")
    before = await wire.fields(redis, "a")
    with pytest.raises(DuplicateTaskError):
        await inspector.update_task_payload(QUEUE, "a", b"b")
    assert await wire.fields(redis, "a") == before
    assert await locks(redis) == 2


async def test_update_takes_no_lock_that_ran_out_and_changes_none_of_the_producers_own(
    redis: Redis, inspector: Inspector
) -> None:
    await put_in(redis, TaskState.SCHEDULED, "a", "own")
    keys = queue_keys(QUEUE)
    await redis.delete(keys.unique("t", b"a"))
    await inspector.update_task_payload(QUEUE, "a", b"new")
    assert await redis.get(keys.unique("t", b"new")) is None

    message = TaskMessage.FromString((await wire.fields(redis, "own"))["msg"])
    message.unique_key = keys.unique_prefix + "mine"
    await redis.hset(PREFIX + "t:own", "msg", message.SerializeToString())
    await redis.set(message.unique_key, "own")
    await inspector.update_task_payload(QUEUE, "own", b"new")
    assert await redis.get(message.unique_key) == b"own"


async def test_update_of_a_task_without_lock(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a", options={"process_in": HOUR})
    await inspector.update_task_payload(QUEUE, "a", b"new")
    assert (await inspector.task(QUEUE, "a")).payload == b"new"
    assert "unique_key" not in await wire.fields(redis, "a")


@pytest.mark.parametrize("state", [s for s in TaskState if s is not TaskState.SCHEDULED])
async def test_update_is_for_scheduled_tasks(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    await put_in(redis, state, "a")
    with pytest.raises(TaskStateError, match="不在定时状态"):
        await inspector.update_task_payload(QUEUE, "a", b"new")


async def test_update_refuses_what_clients_refuse(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.SCHEDULED, "a")
    with pytest.raises(TaskNotFoundError):
        await inspector.update_task_payload(QUEUE, "none", b"new")
    with pytest.raises(PayloadTooLargeError):
        await inspector.update_task_payload(QUEUE, "a", b"x" * (256 * 1024 + 1))


async def test_concurrent_updates_leave_one_payload_and_its_lock(redis: Redis, inspector: Inspector) -> None:
    await put_in(redis, TaskState.SCHEDULED, "a")
    payloads = [str(number).encode() for number in range(4)]
    await asyncio.gather(*(inspector.update_task_payload(QUEUE, "a", payload) for payload in payloads))
    payload = (await inspector.task(QUEUE, "a")).payload
    assert await redis.get(queue_keys(QUEUE).unique("t", payload)) == b"a"
    assert await locks(redis) == 1
