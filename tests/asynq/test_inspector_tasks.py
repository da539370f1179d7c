"""What the inspector shows of single tasks, and page by page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.inspector_errors import QueueNotFoundError, TaskNotFoundError, TaskNotRunningError
from junhong_cmp.asynq.inspector_types import TaskDetails
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task

HOUR = timedelta(hours=1)


def instant(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inspector(redis: Redis, clock: Clock) -> Inspector:
    return Inspector(redis, clock=clock)


async def test_all_that_is_known_of_a_task(redis: Redis, inspector: Inspector) -> None:
    options = EnqueueOptions(
        queue=QUEUE,
        task_id="a",
        max_retry=7,
        timeout=timedelta(seconds=90),
        deadline=instant(NOW + 3600),
        retention=HOUR,
        process_in=timedelta(minutes=1),
        group="g",
    )
    await Client(redis, clock=Clock()).enqueue(Task("t", b"\xff", {"k": "v"}), options)
    assert await inspector.task(QUEUE, "a") == TaskDetails(
        id="a",
        queue=QUEUE,
        state=TaskState.SCHEDULED,
        type="t",
        payload=b"\xff",
        headers={"k": "v"},
        max_retry=7,
        timeout=timedelta(seconds=90),
        deadline=instant(int(NOW) + 3600),
        group="g",
        retention=HOUR,
        next_process_at=instant(int(NOW) + 61),
    )


async def test_pending_then_active_then_failed_then_completed(
    redis: Redis, inspector: Inspector, clock: Clock
) -> None:
    broker = Broker(redis, clock=clock)
    await wire.put(redis, "a", options={"retention": HOUR})
    clock.now += 5
    task = await inspector.task(QUEUE, "a")
    assert task.pending_since is not None
    assert abs(task.pending_since - instant(NOW)) < timedelta(milliseconds=1)
    assert (task.state, task.next_process_at) == (TaskState.PENDING, instant(NOW + 5))

    (leased,) = await wire.take(redis, clock=clock)
    task = await inspector.task(QUEUE, "a")
    assert (task.state, task.next_process_at, task.orphaned) == (TaskState.ACTIVE, None, False)

    await broker.ack(QUEUE, [Ack(AckKind.RETRY, leased, error="boom", at=int(NOW) + 60)])
    task = await inspector.task(QUEUE, "a")
    assert (task.state, task.retried, task.last_error) == (TaskState.RETRY, 1, "boom")
    assert (task.last_failed_at, task.next_process_at) == (instant(int(NOW) + 5), instant(int(NOW) + 60))

    await inspector.run_task(QUEUE, "a")
    (leased,) = await wire.take(redis, clock=clock)
    await broker.write_result(QUEUE, "a", b"42")
    await broker.ack(QUEUE, [Ack(AckKind.COMPLETE, leased)])
    task = await inspector.task(QUEUE, "a")
    assert (task.state, task.result, task.next_process_at) == (TaskState.COMPLETED, b"42", None)
    assert task.completed_at == instant(int(NOW) + 5)


async def test_an_active_task_whose_worker_is_gone(redis: Redis, inspector: Inspector, clock: Clock) -> None:
    await wire.put(redis, "lapsed", "lost")
    await wire.take(redis)
    await redis.zrem(PREFIX + "lease", "lost")
    assert (await inspector.task(QUEUE, "lost")).orphaned
    assert not (await inspector.task(QUEUE, "lapsed")).orphaned
    clock.now += 31
    assert [task.orphaned for task in await inspector.list_tasks(QUEUE, TaskState.ACTIVE)] == [True, True]


async def test_what_is_not_there(redis: Redis, inspector: Inspector) -> None:
    with pytest.raises(QueueNotFoundError, match="队列不存在：q"):
        await inspector.task(QUEUE, "a")
    with pytest.raises(QueueNotFoundError):
        await inspector.list_tasks(QUEUE, TaskState.PENDING)
    await wire.put(redis, "a")
    with pytest.raises(TaskNotFoundError, match="任务不存在：队列 q，编号 b"):
        await inspector.task(QUEUE, "b")
    with pytest.raises(ValueError, match="页码"):
        await inspector.list_tasks(QUEUE, TaskState.PENDING, page=0)


@pytest.mark.parametrize("state", list(TaskState))
async def test_pages_are_oldest_first(redis: Redis, inspector: Inspector, state: TaskState) -> None:
    names = [f"{number:03}" for number in range(250)]
    options: dict[str, Any] = {}
    if state is TaskState.SCHEDULED:
        options["process_in"] = HOUR
    if state is TaskState.AGGREGATING:
        options["group"] = "g"
    await wire.put(redis, *names, options=options)
    kinds = {
        TaskState.RETRY: AckKind.RETRY,
        TaskState.ARCHIVED: AckKind.ARCHIVE,
        TaskState.COMPLETED: AckKind.COMPLETE,
    }
    if state in kinds or state is TaskState.ACTIVE:
        tasks = await wire.take(redis, 250)
        if state in kinds:
            await Broker(redis, clock=Clock()).ack(QUEUE, [Ack(kinds[state], task, at=1) for task in tasks])

    async def page(number: int, size: int = 30) -> list[str]:
        tasks = await inspector.list_tasks(QUEUE, state, group="g", page=number, size=size)
        assert {task.state for task in tasks} <= {state}
        return [task.id for task in tasks]

    assert await page(1) == names[:30]
    assert await page(2) == names[30:60]
    assert await page(9) == names[240:]
    assert await page(10) == []
    assert await page(1, 240) == names[:240]
    assert await page(2, 240) == names[240:]


async def test_ids_without_a_task_are_not_shown(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "a")
    await redis.rpush(PREFIX + "pending", "ghost")
    await redis.set(PREFIX + "t:text", "x")
    await redis.rpush(PREFIX + "pending", "text")
    assert [task.id for task in await inspector.list_tasks(QUEUE, TaskState.PENDING)] == ["a"]


async def test_a_task_set_aside_for_its_size_says_so(redis: Redis, inspector: Inspector) -> None:
    await wire.put(redis, "big")
    await redis.hset(PREFIX + "t:big", "msg", bytes(2 << 20))
    await Broker(redis, clock=Clock()).dequeue(QUEUE, 1, owner="w")
    assert (await inspector.task(QUEUE, "big")).quarantined == "任务消息过大"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\xff\xff", "无法解码任务消息"),
        (TaskMessage(id="b").SerializeToString(), "消息中的任务编号与键不符"),
    ],
)
async def test_a_broken_message_is_shown_with_its_reason(
    redis: Redis, inspector: Inspector, message: bytes, reason: str
) -> None:
    await wire.put(redis, "a", "good")
    await redis.hset(PREFIX + "t:a", "msg", message)
    broken, good = await inspector.list_tasks(QUEUE, TaskState.PENDING)
    assert (broken.id, broken.type, broken.quarantined) == ("a", "", reason)
    assert (good.type, good.quarantined) == ("t", "")
    await Broker(redis, clock=Clock()).dequeue(QUEUE, 2, owner="w")
    (archived,) = await inspector.list_tasks(QUEUE, TaskState.ARCHIVED)
    assert archived.quarantined == reason
    await inspector.delete_task(QUEUE, "a")


async def test_instants_no_calendar_holds(redis: Redis, inspector: Inspector) -> None:
    message = TaskMessage(id="a", queue=QUEUE, type="t", deadline=2**62)
    await wire.put(redis, "a")
    await redis.hset(PREFIX + "t:a", "msg", message.SerializeToString())
    assert (await inspector.task(QUEUE, "a")).deadline is None


async def test_what_nobody_works_on_is_not_cancelled(redis: Redis, inspector: Inspector) -> None:
    with pytest.raises(TaskNotRunningError, match="任务不存在：编号 a") as nowhere:
        await inspector.cancel_running("a")
    assert nowhere.value.places == ()
    for queue in (QUEUE, "other"):
        await Client(redis).enqueue(Task("t"), EnqueueOptions(queue=queue, task_id="a"))
    with pytest.raises(TaskNotRunningError, match="没有在执行") as waiting:
        await inspector.cancel_running("a")
    assert sorted(waiting.value.places) == sorted([(QUEUE, TaskState.PENDING), ("other", TaskState.PENDING)])
    await Broker(redis).dequeue("other", 1, owner="w")
    assert await inspector.cancel_running("a") == 0, "asked for, though no server listens here"
