"""The result of a task, from its handler to whoever asks for it, and until its retention is over."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import Bench, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.states import TaskState

HOUR = timedelta(hours=1)


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


@pytest.mark.parametrize("result", [b"\x00\xff\r\n", b"", "完成".encode(), bytes(100_000)])
async def test_a_result_is_kept_with_the_completed_task(bench: Bench, result: bytes) -> None:
    async def handler(task: ProcessingTask) -> None:
        await task.write_result(b"not the last word, and longer than what comes after it")
        await task.write_result(result)

    await bench.serve(handler)
    (task_id,) = await bench.enqueue("a", retention=HOUR)
    await bench.wait_size("completed", 1)
    found = await Inspector(bench.redis).task("default", task_id)
    assert (found.state, found.result, found.retention) == (TaskState.COMPLETED, result, HOUR)
    assert found.completed_at is not None
    assert abs(found.completed_at - datetime.now(UTC)) < timedelta(seconds=10)
    expiry = await bench.redis.execute_command("ZSCORE", queue_keys("default").completed, task_id)
    assert float(expiry) == found.completed_at.timestamp() + 3600


async def test_a_result_survives_a_failure_and_is_replaced_by_the_next_try(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await task.write_result(b"try %d" % task.retried)
        if task.retried == 0:
            raise ValueError

    await bench.serve(handler)
    (task_id,) = await bench.enqueue("a", retention=HOUR)
    await bench.wait_size("completed", 1)
    assert await bench.field(task_id, "result") == b"try 1"


async def test_an_archived_task_keeps_what_it_had_found(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await task.write_result(b"so far")
        raise SkipRetry("x")

    await bench.serve(handler)
    (task_id,) = await bench.enqueue("a")
    await bench.wait_size("archived", 1)
    assert (await Inspector(bench.redis).task("default", task_id)).result == b"so far"


async def test_without_retention_nothing_is_left(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await task.write_result(b"x")

    await bench.serve(handler)
    (task_id,) = await bench.enqueue("a")
    await wait_until(lambda: bench.counter("processed"), description="processed")
    assert await bench.redis.execute_command("EXISTS", queue_keys("default").task(task_id)) == 0


async def test_a_worker_that_lost_its_task_writes_no_result(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await bench.redis.execute_command("HSET", queue_keys("default").task(task.id), "owner", "another")
        await task.write_result(b"mine")

    with capture_logs() as logs:
        await bench.serve(handler)
        (task_id,) = await bench.enqueue("a", retention=HOUR)
        await wait_until(
            lambda: any(entry["event"] == "任务已不归本 Worker，结果未写入" for entry in logs),
            description="told",
        )
    assert await bench.field(task_id, "result") is None
