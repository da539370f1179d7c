"""Real worker processes against real services: start, start-up record, signals, exit codes."""

import time

import pytest
from tests.worker_process import WorkerProcess

SINGLETONS = ["polling_initializer", "polling_scheduler", "asynq_scheduler"]
UNREACHABLE = {
    "JUNHONG_REDIS_URL": "redis://:redis-canary@127.0.0.1:1/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://u:pg-canary@127.0.0.1:1/db",
}


@pytest.fixture
def env(redis_url: str, postgres_dsn: str) -> dict[str, str]:
    return {"JUNHONG_REDIS_URL": redis_url, "JUNHONG_POSTGRES_DSN": postgres_dsn}


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
        assert time.monotonic() - began < 3
    assert [record["module"] for record in worker.find("模块已停止")] == expected[::-1]
    assert worker.find("收到退出信号，开始优雅关闭")[0]["signal"] == "SIGTERM"
    assert worker.find("优雅关闭完成")
    assert not [record for record in worker.records if record["level"] in {"error", "critical"}]
