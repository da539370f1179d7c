"""``junhong status`` against real servers."""

import asyncio
import re
import socket
import time
from datetime import datetime, timedelta

import orjson
import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.asynq_pb2 import ServerInfo
from junhong_cmp.asynq.broker_presence import write_server_state
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.keys import ALL_SERVERS
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling import keys
from junhong_cmp.polling.hold_notice import post_hold
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.version import program_version

COLUMNS = "240"


@pytest.fixture
async def env(redis: Redis, redis_url: str, pool: Pool, postgres_dsn: str) -> dict[str, str]:
    async with pool.acquire() as conn:
        account = await record_account(conn, NewAccount(code="demo[red]", name="演示", carrier=Carrier.CMCC))
    queue = PollingQueueManager(redis)
    now = await queue.now_ms()
    waiting = [(1, now - 120_000), (2, now - 1), (3, now + 3_600_000)]
    await queue.add_many(TaskType.POLLING_CARDDATA, account.id, waiting)
    await queue.close()
    await redis.zadd(keys.account_slots(account.id), {"carddata:1": now + 60_000})
    await redis.set(keys.account_granted(account.id), f"12.5 {now * 1000} 0")  # lowered, not growing
    await Client(redis).enqueue(Task("any"), EnqueueOptions(queue="polling"))
    await pool.execute(
        "INSERT INTO poll_minute (task_type, account_id, minute, done, failed, lag_histogram)"
        " VALUES ('polling:carddata', $1, date_trunc('minute', now()), 5, 1, '{0,6}')",
        account.id,
    )
    await pool.execute(
        "INSERT INTO import_task (account_id, file_name, file_key, file_sha256, file_bytes, status, total)"
        " VALUES ($1, '卡.csv', 'k', repeat('a', 64), 1, 'done', 9)",
        account.id,
    )
    return {"JUNHONG_REDIS_URL": redis_url, "JUNHONG_POSTGRES_DSN": postgres_dsn, "COLUMNS": COLUMNS}


async def test_json(env: dict[str, str]) -> None:
    env["JUNHONG_WORKER_ROEL"] = "leader"  # told on standard error: a program reads the other one
    async with WorkerProcess(env, arguments=("status", "--json")) as command:
        assert await command.wait_exit() == 0, command.log_text
    assert command.find("配置中有可疑之处")
    status = orjson.loads(command.output)
    assert status["instances"] == []
    assert status["leadership"] == {"leader": None, "standbys": []}
    assert status["claims_held_s"] is None
    assert status["totals"] == {"cards": 3, "due": 2, "overdue": 1}
    assert len(status["shards"]) == 3
    assert status["queues"][0]["pending"] == 1
    (rate,) = status["rates"]
    assert (rate["qps"], rate["granted_qps"], rate["in_flight"]) == (50.0, 12.5, 1)
    at, since = (datetime.fromisoformat(text) for text in (status["at"], status["last_minute"]["since"]))
    assert since == at.replace(second=0, microsecond=0) - timedelta(minutes=1)
    assert status["last_minute"]["done"] == 5
    assert status["last_minute"]["failed"] == 1
    assert status["last_minute"]["lag_p95_ms"] is not None
    assert status["imports"][0]["file_name"] == "卡.csv"


async def test_tables(env: dict[str, str]) -> None:
    async with WorkerProcess(env, arguments=("status",)) as command:
        assert await command.wait_exit() == 0, command.log_text
    for text in ("demo[red]", "polling:carddata", "卡.csv", "│ 完成 │", "12.5"):
        assert text in command.output
    assert re.search(r"自 \d\d:\d\d 起的轮询：完成 5，失败 1", command.output)


async def test_why_nothing_is_claimed_is_told(env: dict[str, str], redis: Redis) -> None:
    await post_hold(redis, timedelta(seconds=75))
    async with WorkerProcess(env, arguments=("status",)) as command:
        assert await command.wait_exit() == 0, command.log_text
    assert "主节点暂缓认领" in command.output
    async with WorkerProcess(env, arguments=("status", "--json")) as command:
        assert await command.wait_exit() == 0, command.log_text
    assert 0 < orjson.loads(command.output)["claims_held_s"] <= 75


async def test_unreachable_is_69(env: dict[str, str]) -> None:
    async with WorkerProcess(
        {**env, "JUNHONG_REDIS_URL": "redis://127.0.0.1:1"}, arguments=("status",)
    ) as command:
        assert await command.wait_exit() == 69
    assert command.log_text.startswith("错误：")


async def test_every_process_is_shown_with_its_role_its_name_and_its_version(
    env: dict[str, str], redis: Redis
) -> None:
    foreign = ServerInfo(host="go-host", pid=7, server_id="go", status="stopped", queues={"default": 1})
    await write_server_state(redis, foreign, (), time.time(), timedelta(minutes=5))
    named = {**env, "JUNHONG_WORKER_ROLE": "consumer", "JUNHONG_WORKER_INSTANCE_NAME": "消费[一号]"}
    unnamed = {**env, "JUNHONG_WORKER_ROLE": "leader"}
    async with WorkerProcess(named) as consumer, WorkerProcess(unnamed) as leader:
        await asyncio.gather(consumer.wait_started(), leader.wait_started())

        async def shown() -> bool:
            return await redis.zcard(ALL_SERVERS) == 3

        await wait_until(shown, description="both have shown themselves")
        async with WorkerProcess(env, arguments=("status", "--json")) as command:
            assert await command.wait_exit() == 0, command.log_text
        instances = orjson.loads(command.output)["instances"]
        async with WorkerProcess(env, arguments=("status",)) as command:
            assert await command.wait_exit() == 0, command.log_text
        page = command.output
    known = [(one["role"], one["name"], one["version"], one["pid"]) for one in instances]
    assert known == [
        ("", "", "", 7),
        ("consumer", "消费[一号]", program_version(), consumer.pid),
        ("leader", "", program_version(), leader.pid),
    ]
    assert [one["status"] for one in instances] == ["stopped", "active", "active"]
    rows = [line.split("│")[1:7] for line in page.splitlines() if line.startswith("│ ")]
    cells = [[cell.strip() for cell in row] for row in rows]
    host = socket.gethostname()
    assert ["—", "—", "go-host", "7", "—", "停止取任务"] in cells
    assert ["consumer", "消费[一号]", host, str(consumer.pid), program_version(), "运行中"] in cells
    assert ["leader", "未命名", host, str(leader.pid), program_version(), "运行中"] in cells
