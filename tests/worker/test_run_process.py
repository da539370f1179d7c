"""Real worker processes against real services: start, start-up record, signals, exit codes."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.polling.tasks import TaskType

SINGLETONS = ["polling_initializer", "polling_scheduler", "asynq_scheduler"]
UNREACHABLE = {
    "JUNHONG_REDIS_URL": "redis://:redis-canary@127.0.0.1:1/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://u:pg-canary@127.0.0.1:1/db",
}
EXIT_LIMIT_S = 2.0
SLACK_S = 1.5  # test machines are busy; the exit guard itself holds the limit


@pytest.fixture
def env(redis_url: str, postgres_dsn: str) -> dict[str, str]:
    return {"JUNHONG_REDIS_URL": redis_url, "JUNHONG_POSTGRES_DSN": postgres_dsn}


@pytest.fixture
async def silent_port() -> AsyncIterator[int]:
    """A server that accepts and never answers."""
    held: list[asyncio.StreamWriter] = []

    def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    for writer in held:
        writer.transport.abort()
    server.close()
    await server.wait_closed()


def errors_of(worker: WorkerProcess) -> list[dict[str, object]]:
    return [record for record in worker.records if record["level"] in {"error", "critical"}]


def handles_sigterm(pid: int) -> bool:
    """Whether the process has come as far as installing its handler: its very first lines."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize("role", ["all", "leader", "consumer"])
async def test_start_record_and_clean_stop(env: dict[str, str], role: str) -> None:
    expected = ["queue_server"] if role == "consumer" else ["queue_server", *SINGLETONS]
    async with WorkerProcess({**env, "JUNHONG_WORKER_ROLE": role}) as worker:
        record = await worker.wait_started()
        assert record["enabled_modules"] == expected
        assert record["disabled_modules"] == (SINGLETONS if role == "consumer" else [])
        assert ("承担单例主动调度职责" in record["event"]) is (role != "consumer")
        assert (record["role"], record["instance"]) == (role, "未命名")
        assert len(record["missing"]) == 2
        began = time.monotonic()
        assert await worker.stop() == 0, worker.log_text
        assert time.monotonic() - began < EXIT_LIMIT_S + SLACK_S
    assert [record["module"] for record in worker.find("模块已停止")] == expected[::-1]
    assert worker.find("收到退出信号，开始优雅关闭")[0]["signal"] == "SIGTERM"
    assert worker.find("优雅关闭完成")
    assert not errors_of(worker)


async def test_optional_services_are_used_when_configured(env: dict[str, str], tmp_path: Path) -> None:
    optional = {
        "JUNHONG_STORAGE_URL": f"file://{tmp_path}/files",
        "JUNHONG_GATEWAY_URL": "http://127.0.0.1:9",
        "JUNHONG_GATEWAY_ALLOW_HTTP": "true",
        "JUNHONG_WORKER_INSTANCE_NAME": "主机一",
    }
    async with WorkerProcess({**env, **optional}) as worker:
        record = await worker.wait_started()
        assert record["missing"] == []
        assert record["instance"] == "主机一"
        assert await worker.stop() == 0, worker.log_text


@pytest.mark.parametrize(
    "wrong",
    [
        {"JUNHONG_WORKER_ROLE": "scheduler"},
        {"JUNHONG_REDIS_URL": "redis-sentinel://127.0.0.1:1/0"},
        {"JUNHONG_STORAGE_URL": "s3://bucket?colour=red"},
        {"JUNHONG_GATEWAY_URL": "https://user@gateway.invalid"},
        {
            "JUNHONG_GATEWAY_URL": "https://gateway.invalid",
            "JUNHONG_GATEWAY_KEY_ID": "k",
            "JUNHONG_GATEWAY_SECRET": "short",
        },
    ],
    ids=["role", "redis", "storage", "gateway address", "gateway key"],
)
async def test_whatever_is_wrong_is_told_before_anything_is_connected(wrong: dict[str, str]) -> None:
    async with WorkerProcess({**UNREACHABLE, **wrong}) as worker:
        assert await worker.wait_exit() == 78, worker.log_text
    assert errors_of(worker)
    assert not worker.find("等待依赖就绪")


@pytest.mark.parametrize("step", range(0, 2_000, 200))
async def test_sigterm_at_any_moment_of_the_start(env: dict[str, str], step: int) -> None:
    """Imports, configuration, connecting, start, running: always 0 within two seconds."""
    async with WorkerProcess(env) as worker:
        await wait_until(lambda: handles_sigterm(worker.pid), description="the handler is installed")
        await asyncio.sleep(step / 1000)  # the moment is what is being tried
        began = time.monotonic()
        assert await worker.stop() == 0, worker.log_text
        assert time.monotonic() - began < EXIT_LIMIT_S + SLACK_S
    assert not errors_of(worker)


async def test_sigterm_while_connecting_to_a_stalled_redis(env: dict[str, str], silent_port: int) -> None:
    env["JUNHONG_REDIS_URL"] = f"redis://127.0.0.1:{silent_port}/0"
    async with WorkerProcess(env) as worker:
        await worker.wait_for("等待依赖就绪")
        began = time.monotonic()
        assert await worker.stop() == 0, worker.log_text
        assert time.monotonic() - began < EXIT_LIMIT_S + SLACK_S


async def test_a_second_signal_ends_at_once(env: dict[str, str], silent_port: int) -> None:
    env["JUNHONG_REDIS_URL"] = f"redis://127.0.0.1:{silent_port}/0"
    async with WorkerProcess(env) as worker:
        await worker.wait_for("等待依赖就绪")
        worker.signal(signal.SIGSTOP)
        worker.signal(signal.SIGTERM)
        worker.signal(signal.SIGINT)
        worker.signal(signal.SIGCONT)  # both are pending now: the second is handled right after the first
        assert await worker.wait_exit() in {128 + signal.SIGTERM, 128 + signal.SIGINT}


async def test_unreachable_services_are_69_after_the_limit() -> None:
    async with WorkerProcess({**UNREACHABLE, "JUNHONG_START_LIMIT": "1s"}) as worker:
        assert await worker.wait_exit() == 69
    assert "Redis 在 1 秒内未就绪" in worker.find("Worker 未能启动")[0]["reason"]
    assert "canary" not in worker.log_text


async def test_it_waits_for_a_schema_and_then_says_78(
    env: dict[str, str], postgres_server: EmbeddedPostgres
) -> None:
    await postgres_server.create_database("bare")
    try:
        env |= {"JUNHONG_POSTGRES_DSN": postgres_server.dsn("bare"), "JUNHONG_START_LIMIT": "1s"}
        async with WorkerProcess(env) as worker:
            await worker.wait_for("等待依赖就绪", dependency="PostgreSQL 库表")
            assert await worker.wait_exit() == 78
        assert "junhong migrate" in worker.find("Worker 未能启动")[0]["reason"]
    finally:
        await postgres_server.drop_database("bare")


@pytest.mark.parametrize("login", [":wrong-canary", "nobody:wrong-canary"])
async def test_a_refused_password_is_78_at_once(env: dict[str, str], redis_url: str, login: str) -> None:
    env["JUNHONG_REDIS_URL"] = redis_url.replace("unix://", f"unix://{login}@")
    async with WorkerProcess(env) as worker:
        assert await worker.wait_exit() == 78
    assert "Redis 拒绝登录" in worker.find("配置错误")[0]["problem"]
    assert "canary" not in worker.log_text


async def test_it_starts_before_its_services(env: dict[str, str], postgres_server: EmbeddedPostgres) -> None:
    await postgres_server.stop()
    async with WorkerProcess(env) as worker:
        await worker.wait_for("等待依赖就绪", dependency="PostgreSQL")
        await postgres_server.start()
        await worker.wait_started()
        assert await worker.stop() == 0, worker.log_text


async def test_tstp_stops_fetching_and_nothing_else(env: dict[str, str], redis: Redis) -> None:
    inspector = Inspector(redis)

    async def shown_as(status: str) -> bool:
        return [server.info.status for server in await inspector.servers()] == [status]

    async with WorkerProcess(env) as worker:
        await worker.wait_started()
        await wait_until(lambda: shown_as("active"), description="the server shows itself")
        worker.signal(signal.SIGTSTP)
        await worker.wait_for("收到 SIGTSTP，停止取新任务")
        await wait_until(lambda: shown_as("stopped"), timeout=15, description="fetching has stopped")
        assert psutil.Process(worker.pid).status() != psutil.STATUS_STOPPED
        assert await worker.stop() == 0, worker.log_text
    assert await inspector.servers() == []


SLOW_POLLS = """
import asyncio
from junhong_cmp.polling.handlers.carddata import CarddataHandler
async def process_task(self, task):
    await asyncio.sleep(60)
CarddataHandler.process_task = process_task
"""


async def occupy(worker: WorkerProcess, redis: Redis) -> None:
    """Have the worker in the middle of a task that takes a minute."""
    await Client(redis).enqueue(
        Task(TaskType.POLLING_CARDDATA), EnqueueOptions(queue="polling", task_id="slow")
    )
    await worker.wait_started()

    async def busy() -> bool:
        return any(queue.active for queue in await Inspector(redis).queues())

    await wait_until(busy, description="the task is being processed")


async def test_unfinished_tasks_go_back_to_the_queue(env: dict[str, str], redis: Redis) -> None:
    async with WorkerProcess({**env, "JUNHONG_SHUTDOWN_GRACE": "500ms"}, prelude=SLOW_POLLS) as worker:
        await occupy(worker, redis)
        began = time.monotonic()
        assert await worker.stop() == 0, worker.log_text
        assert time.monotonic() - began < 0.5 + EXIT_LIMIT_S + SLACK_S
    assert worker.find("任务服务器已停止", requeued=1, abandoned=0)
    assert await redis.lrange("asynq:{polling}:pending", 0, -1) == [b"slow"]


async def test_a_second_signal_while_draining_ends_at_once(env: dict[str, str], redis: Redis) -> None:
    async with WorkerProcess({**env, "JUNHONG_SHUTDOWN_GRACE": "30s"}, prelude=SLOW_POLLS) as worker:
        await occupy(worker, redis)
        worker.signal(signal.SIGTERM)
        await worker.wait_for("任务服务器开始停止")
        worker.signal(signal.SIGTERM)
        assert await worker.wait_exit(timeout=5) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    "loop",
    [
        "junhong_cmp.asynq.scheduler.Scheduler",
        "junhong_cmp.polling.scheduler.PollingScheduler",
        "junhong_cmp.polling.initializer.PollingInitializer",
        "junhong_cmp.polling.shared_clock.SharedClock",
        "junhong_cmp.polling.stats.PollStats",
    ],
)
async def test_a_critical_loop_that_dies_ends_the_process_with_70(env: dict[str, str], loop: str) -> None:
    module, _, name = loop.rpartition(".")
    deadly = f"""
import asyncio
from {module} import {name}
async def die(self):
    await asyncio.sleep(2)  # what all share is started first, and watched from the end of the start
    raise ZeroDivisionError("by zero")
{name}._run = die
"""
    async with WorkerProcess(env, prelude=deadly) as worker:
        await worker.wait_started()
        assert await worker.wait_exit() == 70, worker.log_text
    assert "ZeroDivisionError" in worker.find("关键循环已终止，进程退出")[0]["reason"]
    assert len(worker.find("模块已停止")) == 4
