from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq import client as client_module
from junhong_cmp.asynq.client import BulkEnqueueError, Client
from junhong_cmp.asynq.errors import (
    DuplicateTaskError,
    InvalidTaskError,
    PayloadTooLargeError,
    TaskIdConflictError,
)
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import decode
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, EnqueueResult, EnqueueStatus, Task

LOCK = f"{PREFIX}unique:t:"


@pytest.fixture
def client(redis: Redis) -> Client:
    return Client(redis, clock=Clock())


def options(**more: Any) -> EnqueueOptions:
    return EnqueueOptions(queue=QUEUE, **more)


async def test_a_pending_task(redis: Redis, client: Client) -> None:
    info = await client.enqueue(Task("t", b"{}"), options(task_id="a"))
    assert (info.id, info.queue, info.type, info.state) == ("a", QUEUE, "t", TaskState.PENDING)
    assert info.process_at == datetime.fromtimestamp(NOW, UTC)
    assert await wire.ids(redis, "pending") == ["a"]
    stored = await wire.fields(redis, "a")
    assert set(stored) == {"msg", "state", "pending_since"}
    assert stored["state"] == b"pending"
    assert stored["pending_since"] == str(int(NOW * 1e9)).encode()
    assert await redis.smembers("asynq:queues") == {b"q"}
    assert await redis.ttl(f"{PREFIX}t:a") == -1


async def test_a_scheduled_task(redis: Redis, client: Client) -> None:
    info = await client.enqueue(Task("t"), options(task_id="a", process_in=timedelta(seconds=10)))
    assert info.state is TaskState.SCHEDULED
    assert info.process_at == datetime.fromtimestamp(int(NOW) + 11, UTC)
    assert await wire.scores(redis, "scheduled") == {"a": int(NOW) + 11}
    assert set(await wire.fields(redis, "a")) == {"msg", "state"}


async def test_a_task_of_a_group(redis: Redis, client: Client) -> None:
    await client.enqueue(Task("t"), options(task_id="a", group="g1"))
    assert await wire.scores(redis, "g:g1") == {"a": int(NOW)}
    assert await redis.smembers(PREFIX + "groups") == {b"g1"}
    stored = await wire.fields(redis, "a")
    assert (stored["state"], stored["group"]) == (b"aggregating", b"g1")


async def test_a_scheduled_task_of_a_group_remembers_it(redis: Redis, client: Client) -> None:
    await client.enqueue(Task("t"), options(task_id="a", group="g1", process_in=timedelta(seconds=9)))
    stored = await wire.fields(redis, "a")
    assert (stored["state"], stored["group"]) == (b"scheduled", b"g1")
    assert not await redis.exists(PREFIX + "groups")


@pytest.mark.parametrize("more", [{}, {"process_in": timedelta(seconds=10)}, {"group": "g"}])
async def test_an_id_is_taken_once(redis: Redis, client: Client, more: dict[str, Any]) -> None:
    await client.enqueue(Task("t"), options(task_id="a", **more))
    before = await wire.fields(redis, "a")
    with pytest.raises(TaskIdConflictError, match="任务编号已存在"):
        await client.enqueue(Task("t", b"other"), options(task_id="a", **more))
    assert await wire.fields(redis, "a") == before


@pytest.mark.parametrize(
    ("more", "ttl"), [({}, 60), ({"process_in": timedelta(seconds=10)}, 71), ({"group": "g"}, 60)]
)
async def test_a_lock_is_taken_once(redis: Redis, client: Client, more: dict[str, Any], ttl: int) -> None:
    once = {"unique_for": timedelta(seconds=60), **more}
    await client.enqueue(Task("t"), options(task_id="a", **once))
    assert await redis.get(LOCK) == b"a"
    assert ttl - 2 <= await redis.ttl(LOCK) <= ttl
    assert (await wire.fields(redis, "a"))["unique_key"] == LOCK.encode()
    with pytest.raises(DuplicateTaskError, match="相同任务已在队列中"):
        await client.enqueue(Task("t"), options(task_id="b", **once))
    assert not await redis.exists(f"{PREFIX}t:b")
    assert await redis.get(LOCK) == b"a"


async def test_an_id_conflict_leaves_no_lock_behind(redis: Redis, client: Client) -> None:
    await client.enqueue(Task("t", b"1"), options(task_id="a"))
    with pytest.raises(TaskIdConflictError):
        await client.enqueue(Task("t"), options(task_id="a", unique_for=timedelta(seconds=60)))
    assert not await redis.exists(LOCK)


@pytest.mark.parametrize("once", [{}, {"unique_for": timedelta(seconds=60)}])
async def test_a_list_of_a_wrong_type_leaves_nothing_behind(
    redis: Redis, client: Client, once: dict[str, Any]
) -> None:
    await redis.set(PREFIX + "pending", "x")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await client.enqueue(Task("t"), options(task_id="a", **once))
    assert await wire.keys(redis) == {PREFIX + "pending"}


async def test_a_payload_too_large_is_refused(redis: Redis) -> None:
    client = Client(redis, max_payload_bytes=10)
    await client.enqueue(Task("t", b"x" * 10))
    with pytest.raises(PayloadTooLargeError, match="任务载荷过大：11 字节，上限 10 字节"):
        await client.enqueue(Task("t", b"x" * 11))


async def test_many_with_an_exact_result_each(redis: Redis, client: Client) -> None:
    await client.enqueue(Task("t", b"held"), options(task_id="taken", unique_for=timedelta(seconds=60)))
    results = await client.enqueue_many(
        [
            (Task("t"), options(task_id="a")),
            (Task("t"), EnqueueOptions(queue="other", task_id="b")),
            (Task("t"), options(task_id="taken")),
            (Task("t"), options(task_id="a")),
            (Task("t", b"held"), options(task_id="c", unique_for=timedelta(seconds=60))),
            (Task("t"), options(task_id="d", process_in=timedelta(seconds=5))),
            (Task("t"), options(task_id="e", group="g")),
        ]
    )
    assert [(result.task_id, result.queue, result.status, result.state) for result in results] == [
        ("a", "q", EnqueueStatus.ENQUEUED, TaskState.PENDING),
        ("b", "other", EnqueueStatus.ENQUEUED, TaskState.PENDING),
        ("taken", "q", EnqueueStatus.ID_CONFLICT, None),
        ("a", "q", EnqueueStatus.ID_CONFLICT, None),
        ("c", "q", EnqueueStatus.DUPLICATE, None),
        ("d", "q", EnqueueStatus.ENQUEUED, TaskState.SCHEDULED),
        ("e", "q", EnqueueStatus.ENQUEUED, TaskState.AGGREGATING),
    ]
    assert await redis.smembers("asynq:queues") == {b"q", b"other"}
    assert await client.enqueue_many([]) == []


async def test_many_more_than_one_script_takes_keep_their_order(redis: Redis, client: Client) -> None:
    items = [(Task("t"), options(task_id=f"{number:04}")) for number in range(1234)]
    results = await client.enqueue_many(items)
    assert [result.task_id for result in results] == [f"{number:04}" for number in range(1234)]
    assert (await wire.ids(redis, "pending"))[::-1] == [f"{number:04}" for number in range(1234)]


@pytest.mark.parametrize(
    "bad",
    [
        Task(" "),
        Task("\ud800"),
        Task("t", "text"),  # type: ignore[arg-type] # the point
        Task("t", headers={"k": "\ud800"}),
        Task("t", headers={"k": 1}),  # type: ignore[dict-item] # the point
    ],
)
async def test_many_are_all_checked_before_any_is_sent(redis: Redis, client: Client, bad: Task) -> None:
    with pytest.raises(InvalidTaskError):
        await client.enqueue_many([(Task("t"), options())] * 300 + [(bad, options())])
    assert await redis.keys("*") == []


async def test_a_queue_that_fails_does_not_hide_the_results_of_others(redis: Redis, client: Client) -> None:
    await redis.set("asynq:{bad}:pending", "x")
    with pytest.raises(BulkEnqueueError, match="1/2") as caught:
        await client.enqueue_many(
            [(Task("t"), EnqueueOptions(queue="bad")), (Task("t"), options(task_id="a"))]
        )
    failure, success = caught.value.outcomes
    assert isinstance(failure, RedisError)
    assert success == EnqueueResult(EnqueueStatus.ENQUEUED, "a", QUEUE, TaskState.PENDING)


async def test_the_registry_heals_after_a_flush(
    redis: Redis, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.enqueue(Task("t"), options())
    await redis.flushall()
    await client.enqueue(Task("t"), options())
    assert not await redis.exists("asynq:queues")
    monkeypatch.setattr(client_module, "_REGISTER_EVERY_S", 0.0)
    await client.enqueue(Task("t"), options())
    assert await redis.smembers("asynq:queues") == {b"q"}


async def test_a_dead_server_is_an_error_of_redis() -> None:
    redis = Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=0.2, retry=None)
    with pytest.raises(RedisConnectionError):
        await Client(redis).enqueue(Task("t"))
    await redis.aclose()


@pytest.mark.parametrize(
    "times",
    [
        {"process_at": datetime(9999, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC)},
        {"process_at": datetime.min.replace(tzinfo=UTC)},
        {"process_in": timedelta(days=365_000), "unique_for": timedelta(days=365_000)},
        {"process_in": timedelta.min},
        {"timeout": timedelta(days=365_000), "retention": timedelta(days=365_000)},
        {"deadline": datetime.max.replace(tzinfo=UTC)},
        {"deadline": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
    ],
)
async def test_the_furthest_times_that_are_taken_can_be_read_again(
    redis: Redis, client: Client, times: dict[str, Any]
) -> None:
    info = await client.enqueue(Task("t"), options(**times))
    (result,) = await client.enqueue_many([(Task("u"), options(**times))])
    assert (result.status, result.state) == (EnqueueStatus.ENQUEUED, info.state)
    raw: Any = await redis.hget(queue_keys(QUEUE).task(info.id), "msg")
    assert decode(raw, task_id=info.id, queue=QUEUE).type == "t"
    assert (await Inspector(redis).task(QUEUE, info.id)).state is info.state
