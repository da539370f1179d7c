"""Results are written in batches; what Redis refuses stands alone."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import QUICK, Bench, open_bench
from tests.redis_servers import RedisFixture
from tests.waiting import wait_until

from junhong_cmp.asynq.acker import Acker
from junhong_cmp.asynq.broker_types import Ack, AckKind, LeasedTask
from junhong_cmp.asynq.in_flight import InFlightTable
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.server_config import Intervals, ServerConfig


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


def make_acker(bench: Bench, intervals: Intervals = QUICK) -> Acker:
    config = ServerConfig(intervals=intervals)
    return Acker(bench.broker, InFlightTable(), config, on_relieved=lambda: None)


async def take(bench: Bench, count: int) -> list[LeasedTask]:
    await bench.enqueue_many(count)
    return (await bench.broker.dequeue("default", count, owner="test")).tasks


async def script_calls(bench: Bench) -> int:
    stats = await bench.redis.execute_command("INFO", "commandstats")
    if isinstance(stats, dict):
        return int(stats.get("cmdstat_evalsha", {}).get("calls", 0))
    line = next(
        (line for line in stats.decode().splitlines() if line.startswith("cmdstat_evalsha:")), "calls=0"
    )
    return int(line.split("calls=")[1].split(",")[0])


async def test_what_gathers_while_redis_works_is_written_in_one_script(bench: Bench) -> None:
    tasks = await take(bench, 900)
    acker = make_acker(bench)
    acker.start()
    before = await script_calls(bench)
    for task in tasks:
        acker.submit(Ack(kind=AckKind.DONE, task=task))
    assert await acker.flush(5)
    assert await script_calls(bench) - before <= 3
    assert (await bench.size("active"), await bench.counter("processed")) == (0, 900)
    await acker.stop()


async def test_one_refused_result_does_not_hold_up_its_neighbours(bench: Bench) -> None:
    tasks = await take(bench, 20)
    acker = make_acker(bench)
    acker.start()
    with capture_logs() as logs:
        for number, task in enumerate(tasks):
            unwritable = Ack(kind=AckKind.DONE, task=replace(task, token="\udcff"))
            acker.submit(unwritable if number == 3 else Ack(kind=AckKind.DONE, task=task))
        await wait_until(
            lambda: any(entry["event"] == "任务结果无法写回，稍后重试" for entry in logs),
            description="the refusal is told",
        )

        async def rest_done() -> bool:
            return await bench.counter("processed") == 19

        await wait_until(rest_done, description="the neighbours are written")
    await acker.stop()


async def test_a_spoiled_queue_heals_when_its_key_does(bench: Bench) -> None:
    tasks = await take(bench, 5)
    await bench.redis.execute_command("SET", queue_keys("default").retry, "not a sorted set")
    acker = make_acker(bench)
    acker.start()
    with capture_logs() as logs:
        for task in tasks:
            acker.submit(Ack(kind=AckKind.DONE, task=task))
        await wait_until(lambda: logs, description="the refusal is told")
    assert [entry["event"] for entry in logs] == ["任务结果无法写回，稍后重试"]
    await bench.redis.execute_command("DEL", queue_keys("default").retry)
    assert await acker.flush(8)
    assert await bench.counter("processed") == 5
    await acker.stop()


async def test_a_result_is_given_up_after_its_own_deadline(redis_server: RedisFixture, bench: Bench) -> None:
    (task,) = await take(bench, 1)
    acker = make_acker(bench, replace(QUICK, ack_deadline=timedelta(seconds=0.3)))
    acker.start()
    await redis_server.kill()
    with capture_logs() as logs:
        acker.submit(Ack(kind=AckKind.DONE, task=task))
        await wait_until(
            lambda: any(entry["event"] == "任务结果超过保留时限仍未写回，放弃" for entry in logs),
            description="given up",
        )
    assert await acker.flush(0.1)  # nothing is left to write
    await acker.stop()


async def test_too_many_unwritten_results_are_said_and_relieved(
    redis_server: RedisFixture, bench: Bench
) -> None:
    tasks = await take(bench, 2000)
    relieved = asyncio.Event()
    acker = Acker(bench.broker, InFlightTable(), ServerConfig(intervals=QUICK), on_relieved=relieved.set)
    for task in tasks:
        acker.submit(Ack(kind=AckKind.DONE, task=task))
    assert acker.congested
    acker.start()
    await asyncio.wait_for(relieved.wait(), 5)
    assert not acker.congested
    assert await acker.flush(5)
    await acker.stop()


async def test_a_repeated_result_is_no_surprise(bench: Bench) -> None:
    (task,) = await take(bench, 1)
    acker = make_acker(bench)
    acker.start()
    with capture_logs() as logs:
        acker.submit(Ack(kind=AckKind.DONE, task=task))
        acker.submit(Ack(kind=AckKind.DONE, task=task))
        assert await acker.flush(5)
    assert await bench.counter("processed") == 1
    assert [entry["event"] for entry in logs] == ["任务已不在 Redis 中，结果作废"]
    await acker.stop()
