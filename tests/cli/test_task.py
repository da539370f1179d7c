"""``junhong task`` as processes against a real Redis."""

from datetime import timedelta

import pytest
from redis.asyncio import Redis
from tests.cli.console import Console
from tests.cli.queue_desk import PREFIX, QUEUE, finish, put

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import AckKind
from junhong_cmp.asynq.cancel_requests import CancelPolicy, CancelRequest, decode_request
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.keys import CANCEL_CHANNEL
from junhong_cmp.asynq.task import EnqueueOptions, Task

HOUR = timedelta(hours=1)


async def test_ls(redis: Redis, junhong: Console) -> None:
    await put(redis, *(f"task {number}" for number in range(5)))
    found = await junhong.json("task", "ls", "-q", QUEUE, "-s", "pending", "--page", "2", "--size", "2")
    assert [task["id"] for task in found] == ["task 2", "task 3"]
    assert (found[0]["state"], found[0]["payload"], found[0]["max_retry"]) == ("pending", "{}", 25)
    await put(redis, "[in] a group", group="g")
    table = await junhong("task", "ls", "-q", QUEUE, "-s", "聚合中", "-g", "g")
    assert "[in] a group" in table
    await junhong("task", "ls", "-q", "none", "-s", "pending", code=1)
    assert junhong.errors == "错误：队列不存在：none；junhong queue ls 列出现有队列"
    await junhong("task", "ls", "-q", QUEUE, "-s", "wrong", code=2)
    assert "状态只能为 pending、active" in junhong.errors


async def test_inspect(redis: Redis, junhong: Console) -> None:
    await Client(redis).enqueue(
        Task("t", b"\xff\x00", {"trace": "1"}),
        EnqueueOptions(queue=QUEUE, task_id="a", retention=HOUR, timeout=timedelta(seconds=90)),
    )
    task = await junhong.json("task", "inspect", "a", "-q", QUEUE)
    assert (task["payload"], task["headers"], task["timeout"]) == ("0xff00", {"trace": "1"}, 90.0)
    await finish(redis, [AckKind.ARCHIVE])
    page = await junhong("task", "inspect", "a", "-q", QUEUE)
    assert all(text in page for text in ("归档", "boom", "0xff00", "trace=1", "0:01:30", "0/25"))
    await junhong("task", "inspect", "none", "-q", QUEUE, code=1)
    assert "任务不存在" in junhong.errors


async def test_run_archive_delete_one_by_one(redis: Redis, junhong: Console) -> None:
    await put(redis, "a", "b", process_in=HOUR)
    assert await junhong("task", "run", "a", "b", "-q", QUEUE) == "已排队执行：a\n已排队执行：b\n"
    assert await redis.llen(PREFIX + "pending") == 2
    assert "已归档：a" in await junhong("task", "archive", "a", "-q", QUEUE)
    assert await redis.zcard(PREFIX + "archived") == 1
    output = await junhong("task", "delete", "a", "none", "b", "-q", QUEUE, code=1)
    assert output == "已删除：a\n已删除：b\n"
    assert "任务不存在：队列 polling[red]，编号 none" in junhong.errors
    assert await redis.keys(PREFIX + "*") == []


async def test_what_is_so_already_is_no_refusal(redis: Redis, junhong: Console) -> None:
    await put(redis, "a")
    said = await junhong("task", "run", "a", "-q", QUEUE)
    assert said == f"任务已在待处理中：队列 {QUEUE}，编号 a，没有变化\n"
    await junhong("task", "archive", "a", "-q", QUEUE)
    said = await junhong("task", "archive", "a", "-q", QUEUE)
    assert said == f"任务已归档：队列 {QUEUE}，编号 a，没有变化\n"
    await junhong("task", "delete", "a", "-q", QUEUE)
    await junhong("task", "delete", "a", "-q", QUEUE, code=1)


async def test_all_of_a_state(redis: Redis, junhong: Console) -> None:
    await put(redis, "a", "b", process_in=HOUR)
    await redis.zadd(PREFIX + "scheduled", {"ghost": 1})
    output = await junhong("task", "archive", "--all", "scheduled", "-q", QUEUE)
    assert output == "已归档 2 个任务（清除 1 个没有任务的编号）\n"
    assert await junhong("task", "run", "--all", "归档", "-q", QUEUE) == "已排队执行 2 个任务\n"
    await put(redis, "c", group="g")
    deleted = await junhong("task", "delete", "--all", "aggregating", "-g", "g", "-q", QUEUE)
    assert deleted == "已删除 1 个任务\n"
    assert await junhong("task", "delete", "--all", "pending", "-q", QUEUE) == "已删除 2 个任务\n"
    assert await redis.keys(PREFIX + "*") == []
    await junhong("task", "run", "--all", "completed", "-q", QUEUE, code=1)
    assert "批量立即执行不适用于状态 completed" in junhong.errors


@pytest.mark.parametrize("arguments", [(), ("a", "--all", "retry")])
async def test_either_ids_or_all(junhong: Console, arguments: tuple[str, ...]) -> None:
    await junhong("task", "delete", *arguments, "-q", QUEUE, code=2)
    assert "任务编号与 --all 须给出其一" in junhong.errors


async def test_a_task_in_work_is_only_cancelled(redis: Redis, junhong: Console) -> None:
    await put(redis, "a")
    await Broker(redis).dequeue(QUEUE, 1, owner="w")
    await junhong("task", "delete", "a", "-q", QUEUE, code=1)
    assert "正在处理中" in junhong.errors
    async with redis.pubsub() as channel:
        await channel.subscribe(CANCEL_CHANNEL)
        await channel.get_message(timeout=5)
        assert await junhong("task", "cancel", "a") == "已请求取消：a（1 个实例收到）\n"
        message = await channel.get_message(timeout=5)
        assert message is not None
        assert message["data"] == b"a"
        await junhong("task", "cancel", "a", "--then", "drop")
        messages = [await channel.get_message(timeout=5) for _ in range(2)]
    assert [decode_request(message["data"]) for message in messages if message is not None] == [
        CancelRequest("a", CancelPolicy.DROP),
        CancelRequest("a"),
    ]
    await junhong("task", "cancel", "a", "--then", "explode", code=2)


async def test_only_a_task_in_work_can_be_cancelled(redis: Redis, junhong: Console) -> None:
    await put(redis, "a", "b")
    await Broker(redis).dequeue(QUEUE, 1, owner="w")
    async with redis.pubsub() as channel:
        await channel.subscribe(CANCEL_CHANNEL)
        await channel.get_message(timeout=5)
        said = await junhong("task", "cancel", "b", "none", "a", code=1)
        assert said == "已请求取消：a（1 个实例收到）\n"
        assert junhong.errors.splitlines() == [
            f"错误：任务没有在执行：编号 b，在队列 {QUEUE} 中，状态 pending",
            "错误：任务不存在：编号 none",
        ]
        message = await channel.get_message(timeout=5)
    assert message is not None
    assert message["data"] == b"a"
