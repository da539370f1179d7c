"""``junhong queue`` as processes against a real Redis."""

from datetime import timedelta

from redis.asyncio import Redis
from tests.cli.console import Console
from tests.cli.queue_desk import PREFIX, QUEUE, finish, put

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import AckKind


async def test_ls(redis: Redis, junhong: Console) -> None:
    assert await junhong.json("queue", "ls") == []
    await put(redis, "a", "b")
    await put(redis, "c", group="g")
    (row,) = await junhong.json("queue", "ls")
    assert (row["queue"], row["pending"], row["aggregating"], row["size"]) == (QUEUE, 2, 1, 3)
    assert isinstance(row["latency"], float)
    table = await junhong("queue", "ls")
    assert all(text in table for text in (QUEUE, "待处理", "聚合中", "今日失败"))


async def test_ls_cuts_no_name_and_no_figure_off_in_a_narrow_window(redis: Redis, junhong: Console) -> None:
    await put(redis, "a", "b")
    junhong.env["COLUMNS"] = "80"
    table = await junhong("queue", "ls")
    assert QUEUE in table
    assert "…" not in table
    del junhong.env["COLUMNS"]
    piped = await junhong("queue", "ls")
    assert all(text in piped for text in ("待处理", "今日失败")), "a pipe has no limit"


async def test_inspect(redis: Redis, junhong: Console) -> None:
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


async def test_pause_and_resume(redis: Redis, junhong: Console) -> None:
    await put(redis, "a")
    assert await junhong("queue", "pause", QUEUE) == f"队列已暂停：{QUEUE}\n"
    assert (await Broker(redis).dequeue(QUEUE, 1, owner="w")).paused
    assert "（已暂停）" in await junhong("queue", "ls")
    since = await redis.get(PREFIX + "paused")
    assert await junhong("queue", "pause", QUEUE) == f"队列已处于暂停状态：{QUEUE}，没有变化\n"
    assert await redis.get(PREFIX + "paused") == since
    assert await junhong("queue", "resume", QUEUE) == f"队列已恢复：{QUEUE}\n"
    assert await junhong("queue", "resume", QUEUE) == f"队列并未暂停：{QUEUE}，没有变化\n"
    for command in ("pause", "resume"):
        await junhong("queue", command, "misspelt", code=1)
        assert junhong.errors == "错误：队列不存在：misspelt；junhong queue ls 列出现有队列"
    assert not await redis.exists("asynq:{misspelt}:paused")


async def test_a_pause_of_a_queue_that_is_no_longer_registered_can_be_undone(
    redis: Redis, junhong: Console
) -> None:
    await redis.set("asynq:{gone}:paused", 1)
    assert await junhong("queue", "resume", "gone") == "队列已恢复：gone\n"
    assert not await redis.exists("asynq:{gone}:paused")


async def test_rm(redis: Redis, junhong: Console) -> None:
    await put(redis, "a", unique_for=timedelta(hours=1))
    await junhong("queue", "rm", QUEUE, code=1)
    assert "强制删除" in junhong.errors
    assert "队列已删除" in await junhong("queue", "rm", QUEUE, "--force")
    assert await redis.keys("*") == []


async def test_repair(redis: Redis, junhong: Console) -> None:
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
    junhong = Console(None, "redis://127.0.0.1:1", "postgresql://u@127.0.0.1:1/db")
    await junhong("queue", "ls", code=69)
    assert junhong.errors.startswith("错误：无法读取队列")
