"""``junhong queue`` as processes against a real Redis."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task

POSTGRES = {"JUNHONG_POSTGRES_DSN": "postgresql://u@127.0.0.1:1/db"}  # not needed and never asked
QUEUE = "polling[red]"
PREFIX = f"asynq:{{{QUEUE}}}:"


class Junhong:
    """The program as an operator types it."""

    def __init__(self, redis_url: str) -> None:
        self._env = {**POSTGRES, "JUNHONG_REDIS_URL": redis_url, "COLUMNS": "240"}
        self.errors = ""

    async def __call__(self, *arguments: str, code: int = 0) -> str:
        async with WorkerProcess(self._env, arguments=arguments) as command:
            assert await command.wait_exit() == code, command.log_text + command.output
        self.errors = command.log_text
        return command.output

    async def json(self, *arguments: str, code: int = 0) -> Any:
        return orjson.loads(await self(*arguments, "--json", code=code))


@pytest.fixture
def junhong(redis_url: str) -> Junhong:
    return Junhong(redis_url)


async def put(redis: Redis, *task_ids: str, **options: Any) -> None:
    for task_id in task_ids:
        await Client(redis).enqueue(Task("t", b"{}"), EnqueueOptions(queue=QUEUE, task_id=task_id, **options))


async def finish(redis: Redis, kinds: Sequence[AckKind]) -> None:
    broker = Broker(redis)
    tasks = (await broker.dequeue(QUEUE, len(kinds), owner="w")).tasks
    await broker.ack(QUEUE, [Ack(kind, task, error="boom") for kind, task in zip(kinds, tasks, strict=True)])


async def test_ls(redis: Redis, junhong: Junhong) -> None:
    assert await junhong.json("queue", "ls") == []
    await put(redis, "a", "b")
    await put(redis, "c", group="g")
    (row,) = await junhong.json("queue", "ls")
    assert (row["queue"], row["pending"], row["aggregating"], row["size"]) == (QUEUE, 2, 1, 3)
    assert isinstance(row["latency"], float)
    table = await junhong("queue", "ls")
    assert all(text in table for text in (QUEUE, "待处理", "聚合中", "今日失败"))


async def test_inspect(redis: Redis, junhong: Junhong) -> None:
    await put(redis, "a", "b")
    await finish(redis, [AckKind.DONE, AckKind.ARCHIVE])
    await put(redis, "c", group="组")
    info = await junhong.json("queue", "inspect", QUEUE, "--days", "3")
    assert (info["archived"], info["processed_total"], info["failed_today"]) == (1, 2, 1)
    assert info["groups"] == [{"group": "组", "size": 1}]
    assert [(day["processed"], day["failed"]) for day in info["history"]] == [(2, 1), (0, 0), (0, 0)]
    page = await junhong("queue", "inspect", QUEUE)
    assert all(text in page for text in ("组", "累计处理 2", "按日统计"))
    await junhong("queue", "inspect", "none", code=1)
    assert junhong.errors == "错误：队列不存在：none；junhong queue ls 列出现有队列"


async def test_pause_and_resume(redis: Redis, junhong: Junhong) -> None:
    await put(redis, "a")
    assert await junhong("queue", "pause", QUEUE) == f"队列已暂停：{QUEUE}\n"
    assert (await Broker(redis).dequeue(QUEUE, 1, owner="w")).paused
    assert "（已暂停）" in await junhong("queue", "ls")
    await junhong("queue", "pause", QUEUE, code=1)
    assert "已处于暂停状态" in junhong.errors
    assert await junhong("queue", "resume", QUEUE) == f"队列已恢复：{QUEUE}\n"
    await junhong("queue", "resume", QUEUE, code=1)
    assert "并未暂停" in junhong.errors
    await junhong("queue", "pause", "misspelt", code=1)
    assert not await redis.exists("asynq:{misspelt}:paused")


async def test_rm(redis: Redis, junhong: Junhong) -> None:
    await put(redis, "a", unique_for=timedelta(hours=1))
    await junhong("queue", "rm", QUEUE, code=1)
    assert "强制删除" in junhong.errors
    assert "队列已删除" in await junhong("queue", "rm", QUEUE, "--force")
    assert await redis.keys("*") == []


async def test_repair(redis: Redis, junhong: Junhong) -> None:
    await put(redis, "a", "b")
    assert "没有发现不一致" in await junhong("queue", "repair", "--dry-run")
    await redis.lrem(PREFIX + "pending", 0, "a")
    await redis.rpush(PREFIX + "pending", "ghost[x]")
    (report,) = await junhong.json("queue", "repair", QUEUE, "--dry-run", code=1)
    assert report["counts"] == {"ghost": 1, "orphan": 1}
    assert not report["repaired"]
    assert {"fault": "orphan", "subject": "a", "remedy": "requeued"} in report["examples"]
    page = await junhong("queue", "repair", "--dry-run", code=1)
    assert all(text in page for text in ("发现（未改动） 2 处", "ghost[x]", "任务不在任何列表中"))
    assert await redis.lrange(PREFIX + "pending", 0, -1) == [b"b", b"ghost[x]"]

    assert "已修复 2 处" in await junhong("queue", "repair", QUEUE)
    assert sorted(await redis.lrange(PREFIX + "pending", 0, -1)) == [b"a", b"b"]
    (report,) = await junhong.json("queue", "repair")
    assert (report["total"], report["repaired"]) == (0, True)
    await junhong("queue", "repair", "none", code=1)


async def test_a_redis_that_is_not_there() -> None:
    junhong = Junhong("redis://127.0.0.1:1")
    await junhong("queue", "ls", code=69)
    assert junhong.errors.startswith("错误：无法读取队列")
