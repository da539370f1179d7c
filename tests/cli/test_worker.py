"""``junhong worker`` with a wrong configuration ends at once, in its own words, with 78."""

import time

import pytest
from tests.worker_process import WorkerProcess

UNROUTABLE = {
    "JUNHONG_REDIS_URL": "redis://10.255.255.1:6379/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://u:dsn-canary@10.255.255.1:5432/db",
}


async def test_a_wrong_role_ends_with_78_before_any_connection() -> None:
    began = time.monotonic()
    async with WorkerProcess({**UNROUTABLE, "JUNHONG_WORKER_ROLE": "scheduler"}) as worker:
        assert await worker.wait_exit() == 78
    assert time.monotonic() - began < 2.5  # a second on an idle machine; tests share theirs
    (record,) = worker.find("配置错误")
    assert record["problem"] == 'JUNHONG_WORKER_ROLE 只能为 all、leader、consumer，实际为 "scheduler"'
    assert "canary" not in worker.log_text


async def test_every_fault_is_a_record() -> None:
    async with WorkerProcess({"JUNHONG_WORKER_ROLE": "Leader", "JUNHONG_QUEUE_CONCURRENCY": "0"}) as worker:
        assert await worker.wait_exit() == 78
    assert len(worker.find("配置错误")) == 4


@pytest.mark.parametrize(
    "arguments", [("worker", "--role", " leader "), ("worker", "--config", "absent.yaml")]
)
async def test_flags_are_checked_like_variables(arguments: tuple[str, ...]) -> None:
    async with WorkerProcess(UNROUTABLE, arguments=arguments) as worker:
        assert await worker.wait_exit() == 78
    assert len(worker.find("配置错误")) == 1
