"""Stopping: what becomes of running tasks, and how long it may take."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import Bench, Gate, Recorder, open_bench
from tests.redis_servers import RedisFixture
from tests.waiting import wait_until

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.keys import ALL_SERVERS, ALL_WORKERS
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server import StopReport
from junhong_cmp.asynq.task import Task


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


async def test_unfinished_tasks_go_back_to_the_head_of_the_queue(bench: Bench) -> None:
    gate = Gate()
    ids = await bench.enqueue("1", "2", "3")
    server = await bench.serve(gate, concurrency=2)
    await wait_until(lambda: len(gate.entered) == 2, description="two run")
    report = await server.stop()
    assert report == StopReport(completed=0, requeued=2, abandoned=0)
    assert sorted(gate.cancelled) == sorted(ids[:2])
    pending = await bench.ids("pending")
    assert pending[0] == ids[2]  # the head is the right end: what was never started waits behind
    assert sorted(pending[1:]) == sorted(ids[:2])
    assert (await bench.size("active"), await bench.size("lease")) == (0, 0)
    assert await bench.field(ids[0], "state") == b"pending"


async def test_what_ends_within_the_grace_period_is_completed(bench: Bench) -> None:
    ended: list[bool] = []

    async def handler(task: ProcessingTask) -> None:
        await task.draining.wait()  # a handler is told that the server wants to stop
        ended.append(True)

    server = await bench.serve(handler, shutdown_timeout=timedelta(seconds=5))
    await bench.enqueue("a", "b")
    await wait_until(lambda: server.in_flight == 2, description="both run")
    with capture_logs() as logs:
        began = time.monotonic()
        report = await server.stop()
    assert report == StopReport(completed=2, requeued=0, abandoned=0)
    assert time.monotonic() - began < 3
    assert (ended, await bench.counter("processed"), await bench.size("active")) == ([True, True], 2, 0)
    last = [entry for entry in logs if entry["event"] == "任务服务器已停止"]
    assert (last[0]["completed"], last[0]["requeued"], last[0]["abandoned"]) == (2, 0, 0)


async def test_a_decision_made_while_being_cancelled_counts(bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if task.type == "done":
                return
            raise (SkipRetry("损坏") if task.type == "skip" else ValueError("on the way out")) from None

    server = await bench.serve(handler)
    ids = await bench.enqueue("done", "skip", "error")
    await wait_until(lambda: server.in_flight == 3, description="all run")
    report = await server.stop()
    assert report == StopReport(completed=2, requeued=1, abandoned=0)
    assert await bench.ids("archived") == [ids[1]]
    assert await bench.ids("pending") == [ids[2]]
    assert await bench.counter("processed") == 2


async def test_an_abandoned_task_is_not_requeued_and_is_recovered_by_another_server(bench: Bench) -> None:
    release = asyncio.Event()

    async def stubborn(task: ProcessingTask) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    server = await bench.serve(stubborn)
    (task_id,) = await bench.enqueue("a")
    await wait_until(lambda: server.in_flight, description="it runs")
    with capture_logs() as logs:
        report = await server.stop()
    assert report == StopReport(completed=0, requeued=0, abandoned=1)
    assert "任务取消后仍未结束" in [entry["event"] for entry in logs]
    assert await bench.ids("active") == [task_id]
    recorder = Recorder()
    await bench.serve(recorder)
    await wait_until(lambda: recorder.seen, description="recovered after the lease")
    assert recorder.seen[0].retried == 0  # that its worker stopped is no failure of the task
    release.set()


async def test_stop_is_the_same_however_often_asked(bench: Bench) -> None:
    gate = Gate()
    server = await bench.serve(gate)
    await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")
    first, second = await asyncio.gather(server.stop(), server.stop())
    assert first == second == await server.stop() == StopReport(0, 1, 0)


async def test_a_stop_that_was_begun_goes_on_when_its_caller_is_cancelled(bench: Bench) -> None:
    server = await bench.serve(Gate())
    await bench.enqueue("a")
    await wait_until(lambda: server.in_flight, description="it runs")
    caller = asyncio.create_task(server.stop())
    await asyncio.sleep(0.01)
    caller.cancel()
    await bench.wait_size("pending", 1)
    assert (await server.stop()).requeued == 1


async def test_an_unstarted_server_stops_with_an_empty_report(bench: Bench) -> None:
    assert await bench.make_server(Recorder()).stop() == StopReport(0, 0, 0)


@pytest.mark.parametrize("threaded", [True, False])
async def test_starting_and_stopping_in_every_phase_leaves_nothing(bench: Bench, *, threaded: bool) -> None:
    ids = set(await bench.enqueue_many(200))
    recorder = Recorder()
    before = asyncio.all_tasks()
    for turn in range(40):
        server = await bench.serve(recorder, concurrency=3, threaded=threaded)
        if turn % 4:
            await asyncio.sleep(0.002 * (turn % 5))
        await server.stop()
    await wait_until(lambda: asyncio.all_tasks() <= before, description="no task is left")
    assert await bench.size("active") == 0
    await bench.serve(recorder)
    await bench.wait_size("pending", 0)
    await bench.wait_size("active", 0)
    assert {task.id for task in recorder.seen} == ids
    for name in (ALL_SERVERS, ALL_WORKERS):
        assert await bench.redis.execute_command("ZCARD", name) <= 1


async def test_stop_is_bounded_while_redis_is_frozen(redis_server: RedisFixture, bench: Bench) -> None:
    gate = Gate()
    server = await bench.serve(gate)
    await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")
    pids = [process.pid for process in redis_server.processes if process.pid is not None]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with capture_logs() as logs:
            report = await server.stop()
        assert time.monotonic() - began < 0.2 + 2
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert report.requeued == 1
    assert "停止时仍有任务结果未能写回，租约到期后将重新投递" in [entry["event"] for entry in logs]


async def test_stop_is_bounded_while_redis_is_gone(redis_server: RedisFixture, bench: Bench) -> None:
    server = await bench.serve(Gate())
    await redis_server.kill()
    began = time.monotonic()
    await server.stop()
    assert time.monotonic() - began < 0.2 + 2


async def test_a_redis_restarted_under_load_loses_no_task(redis_server: RedisFixture, bench: Bench) -> None:
    async def handler(task: ProcessingTask) -> None:
        await asyncio.sleep(0.02)
        done.add(task.id)

    done: set[str] = set()
    ids = set(await bench.enqueue_many(1500))
    with capture_logs() as logs:
        await bench.serve(handler, concurrency=20)
        for part in (0.2, 0.5, 0.8):
            await wait_until(lambda part=part: len(done) > part * len(ids), description=f"{part:.0%} done")
            await redis_server.kill()
            await asyncio.sleep(0.3)
            await redis_server.start()
        await wait_until(lambda: done >= ids, timeout=30, description="every task is done")
        await bench.wait_size("active", 0)
    told = [entry for entry in logs if entry["event"] == "Redis 操作失败，将自动重试"]
    assert {"取任务", "续租与心跳"} <= {entry["duty"] for entry in told}
    assert len(told) < 60  # told, not flooded
    assert "Redis 操作已恢复" in [entry["event"] for entry in logs]
    assert [await bench.size(state) for state in ("pending", "retry", "archived")] == [0, 0, 0]


async def test_a_server_may_start_before_its_redis(redis_server: RedisFixture, bench: Bench) -> None:
    await redis_server.kill()
    recorder = Recorder()
    await bench.serve(recorder)
    await asyncio.sleep(0.1)
    await redis_server.start()
    await bench.enqueue("a")
    await wait_until(lambda: recorder.seen, description="found its Redis")


async def test_results_wait_for_redis_and_are_written_once_it_is_back(
    redis_server: RedisFixture, bench: Bench
) -> None:
    gate = Gate()
    await bench.serve(gate)
    await bench.enqueue("a")
    await wait_until(lambda: gate.entered, description="it runs")
    await redis_server.kill()
    gate.opened.set()
    await asyncio.sleep(0.2)
    await redis_server.start()
    await wait_until(lambda: bench.counter("processed"), description="the result is written")
    await asyncio.sleep(0.2)
    assert len(gate.entered) == 1


async def test_killed_connections_are_opened_again(redis_server: RedisFixture, bench: Bench) -> None:
    recorder = Recorder()
    await bench.serve(recorder)
    admin = open_redis(bench.url)
    for number in range(1, 4):
        await redis_server.command("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
        await redis_server.command("CLIENT", "KILL", "TYPE", "pubsub")
        await Client(admin).enqueue(Task("a"))
        await wait_until(lambda number=number: len(recorder.seen) == number, description=f"round {number}")
    await admin.aclose()


@pytest.mark.parametrize(
    ("fault", "cure"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
        pytest.param(
            ("REPLICAOF", "127.0.0.1", "1"),
            ("REPLICAOF", "NO", "ONE"),
            marks=pytest.mark.single_node("a node of a cluster takes no REPLICAOF"),
        ),
    ],
)
async def test_a_redis_that_refuses_writes_for_a_while_loses_nothing(
    redis_server: RedisFixture, bench: Bench, fault: tuple[str, ...], cure: tuple[str, ...]
) -> None:
    gate = Gate()
    await bench.serve(gate)
    await bench.enqueue_many(6)
    await wait_until(lambda: len(gate.entered) == 4, description="slots are full")
    await redis_server.command(*fault)
    try:
        gate.opened.set()
        await asyncio.sleep(0.3)
    finally:
        await redis_server.command(*cure)
    await wait_until(lambda: len(set(gate.entered)) == 6, description="the rest is taken")
    await bench.wait_size("active", 0)
    assert await bench.size("archived") == 0
