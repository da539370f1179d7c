"""A server that ends by itself: after so many tasks, or because a handler asked for it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.asynq.serving import Bench, Gate, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server import Server, StopReport
from junhong_cmp.asynq.server_config import ServerConfig, ServerConfigError


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


@pytest.mark.parametrize(("most", "concurrency"), [(1, 4), (7, 3), (20, 50)])
async def test_a_server_takes_exactly_as_many_tasks_as_it_may(
    bench: Bench, most: int, concurrency: int
) -> None:
    recorder = Recorder()
    await bench.enqueue_many(30)
    server = await bench.serve(recorder, max_tasks=most, concurrency=concurrency)
    async with asyncio.timeout(10):
        await server.wait_drained()
    assert await server.stop() == StopReport(0, 0, 0)
    assert len(recorder.seen) == most
    assert (await bench.size("active"), await bench.size("pending")) == (0, 30 - most)
    assert await bench.counter("processed") == most


async def test_the_last_tasks_are_told_of_the_drain_and_waited_for(bench: Bench) -> None:
    gate = Gate()
    tasks: list[ProcessingTask] = []

    async def handler(task: ProcessingTask) -> None:
        tasks.append(task)
        await gate.process_task(task)

    await bench.enqueue_many(3)
    server = await bench.serve(handler, max_tasks=2)
    await wait_until(lambda: len(tasks) == 2 and tasks[0].draining.is_set(), description="told")
    drained = asyncio.create_task(server.wait_drained())
    await asyncio.sleep(0.05)
    assert not drained.done()
    gate.opened.set()
    await asyncio.wait_for(drained, 5)
    assert server.in_flight == 0


async def test_a_handler_ends_its_server(bench: Bench) -> None:
    servers: list[Server] = []

    async def handler(task: ProcessingTask) -> None:
        if task.type == "last":
            servers[0].drain()

    servers.append(await bench.serve(handler, concurrency=1))
    await bench.enqueue("first", "last", "never")
    async with asyncio.timeout(10):
        await servers[0].wait_drained()
    await servers[0].stop()
    assert await bench.size("pending") == 1
    assert await bench.counter("processed") == 2


def test_a_server_must_be_allowed_one_task() -> None:
    with pytest.raises(ServerConfigError, match="max_tasks"):
        ServerConfig(max_tasks=0)
    assert ServerConfig(shutdown_timeout=timedelta(0)).max_tasks is None
