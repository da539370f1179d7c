"""Leases are kept as long as the process lives, and given up when they are lost."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import Bench, Gate, Recorder, open_bench
from tests.redis_servers import RedisFixture
from tests.waiting import wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.processing_task import ProcessingTask

CRASHER = """
import asyncio, sys
from tests.asynq.serving import Bench

async def main():
    bench = Bench(sys.argv[1])
    async def handler(task):
        print(task.id, flush=True)
        await asyncio.sleep(60)
    await bench.serve(handler)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


@pytest.mark.parametrize("threaded", [True, False])
async def test_a_task_longer_than_its_lease_is_not_run_twice(bench: Bench, *, threaded: bool) -> None:
    gate = Gate()
    await bench.serve(gate, threaded=threaded)
    other = Recorder()
    await bench.enqueue("long")
    await wait_until(lambda: gate.entered, description="it runs")
    await bench.serve(other)
    await asyncio.sleep(4)  # lease 2 s + margin 1 s
    assert not other.seen
    gate.opened.set()
    await wait_until(lambda: bench.counter("processed"), description="done")
    assert await bench.counter("failed") == 0


async def test_a_spoiled_queue_costs_the_others_no_lease(bench: Bench) -> None:
    gate = Gate()
    await bench.serve(gate, queues={"a": 1, "b": 1, "c": 1})
    for queue in ("a", "b", "c"):
        await bench.enqueue("long", queue=queue)
    await wait_until(lambda: len(gate.entered) == 3, description="all run")
    with capture_logs() as logs:
        await bench.redis.execute_command("SET", queue_keys("b").lease, "foreign")
        await asyncio.sleep(4)  # lease 2 s + margin 1 s
    for queue in ("a", "c"):
        lease = queue_keys(queue).lease
        assert await bench.redis.execute_command("ZCOUNT", lease, time.time(), "+inf") == 1
    assert len(await bench.redis.execute_command("ZRANGE", "asynq:servers", 0, -1)) == 1
    assert [log["event"] for log in logs if log.get("duty") == "续租：b"] == ["Redis 操作失败，将自动重试"]
    await bench.redis.execute_command("DEL", queue_keys("b").lease)
    gate.opened.set()
    for queue in ("a", "b", "c"):
        await bench.wait_size("active", 0, queue)
        assert await bench.counter("processed", queue) == 1


async def test_a_blocked_event_loop_keeps_its_leases_and_is_told(bench: Bench) -> None:
    recorder = Recorder(lambda task: time.sleep(4) if task.type == "blocking" else None)
    with capture_logs() as logs:
        await bench.serve(recorder)
        await bench.enqueue("blocking", "patient")
        await wait_until(lambda: len(recorder.seen) == 2, description="both are handled")
        await bench.wait_size("active", 0)
    assert [task.retried for task in recorder.seen] == [0, 0]
    assert await bench.counter("failed") == 0
    told = [
        entry for entry in logs if entry.get("blocking_type") == "blocking"
    ]  # a busy machine may stall as well
    assert [entry["event"] for entry in told] == ["事件循环阻塞"]
    assert "blocking" in told[0]["running_types"]
    assert "time.sleep(4)" in told[0]["stack"]


async def test_a_lost_lease_cancels_the_handler_and_drops_its_result(bench: Bench) -> None:
    gate = Gate()
    with capture_logs() as logs:
        await bench.serve(gate, concurrency=1)
        (task_id,) = await bench.enqueue("a")
        await wait_until(lambda: gate.entered, description="it runs")
        keys = queue_keys("default")
        await bench.redis.execute_command("HSET", keys.task(task_id), "owner", "somebody:else")
        await wait_until(lambda: gate.cancelled, description="its handler is cancelled")
        await wait_until(
            lambda: any(e["event"] == "租约已失去，丢弃任务结果" for e in logs),
            description="told",
        )
    assert await bench.ids("active") == [task_id]  # nothing was written: it is the other's
    assert (await bench.counter("failed"), await bench.counter("processed")) == (0, 0)


@pytest.mark.parametrize("threaded", [True, False])
async def test_a_lease_that_cannot_be_renewed_for_too_long_is_given_up(
    redis_server: RedisFixture, bench: Bench, *, threaded: bool
) -> None:
    gate = Gate()
    await bench.serve(gate, threaded=threaded)
    await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")
    await redis_server.kill()  # as seen from here; to another worker it may be well
    await wait_until(lambda: gate.cancelled, description="the handler is cancelled after lease and margin")
    await redis_server.start()
    gate.opened.set()
    await wait_until(lambda: len(gate.entered) == 2, description="the task is delivered again")
    await wait_until(lambda: bench.counter("processed"), description="and done")


async def test_a_result_that_comes_after_a_takeover_changes_nothing(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await bench.redis.execute_command(
            "HSET", queue_keys("default").task(task.id), "owner", "somebody:else"
        )

    with capture_logs() as logs:
        await bench.serve(handler)
        (task_id,) = await bench.enqueue("a")
        await wait_until(
            lambda: any(e["event"] == "任务已由其他 Worker 接管，结果作废" for e in logs), description="told"
        )
    assert await bench.ids("active") == [task_id]


async def test_a_task_deleted_while_it_ran_is_told_and_forgotten(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await bench.redis.execute_command("FLUSHALL")

    with capture_logs() as logs:
        server = await bench.serve(handler)
        await bench.enqueue("a")
        await wait_until(
            lambda: any(e["event"] == "任务已不在 Redis 中，结果作废" for e in logs), description="told"
        )
    assert server.in_flight == 0


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSTOP])
async def test_the_tasks_of_a_dead_or_frozen_process_are_run_by_another(
    bench: Bench, sig: signal.Signals
) -> None:
    (task_id,) = await bench.enqueue("a")
    root = Path(__file__).parents[2]
    process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
        [sys.executable, "-c", CRASHER, bench.url],
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await bench.wait_size("active", 1)
        os.kill(process.pid, sig)
        recorder = Recorder()
        with capture_logs() as logs:
            await bench.serve(recorder)
            await wait_until(lambda: recorder.seen, description="run by the second server")
        assert [(task.id, task.retried) for task in recorder.seen] == [(task_id, 0)]
        assert any(entry["event"] == "租约过期的任务已收回" for entry in logs)
        await bench.wait_size("active", 0)
        if sig is signal.SIGSTOP:
            os.kill(process.pid, signal.SIGCONT)
            await asyncio.sleep(1)  # the resumed process finds its lease lost and writes nothing
            assert [await bench.size(state) for state in ("pending", "active", "retry")] == [0, 0, 0]
    finally:
        process.kill()
        process.wait()
