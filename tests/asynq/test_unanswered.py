"""A dequeue whose reply is lost: the tasks it took are found at once and not when their lease has run out."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from redis.exceptions import RedisError
from structlog.testing import capture_logs
from tests.asynq.serving import Bench, Gate, Recorder, open_bench
from tests.faultproxy import FaultProxy
from tests.waiting import wait_until

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import Intervals, ServerConfig

DEQUEUE = LuaScript.load("junhong_cmp.asynq", "dequeue").sha1.encode()
PATIENT = Intervals(forward=timedelta(seconds=0.2), backoff_cap=timedelta(seconds=0.3))
"""Leases of 30 s: what comes back sooner was not recovered by its lease."""


pytestmark = pytest.mark.single_node("the proxy stands before one server")


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(redis_url) as opened:
        yield opened


@pytest.fixture
async def shaky(proxy: FaultProxy) -> AsyncIterator[RedisClient]:
    """A client whose connection may fail; it knows the script already."""
    client = open_redis(proxy.url, socket_timeout=timedelta(seconds=0.5))
    await Broker(client).dequeue("default", 1, owner="w")
    yield client
    await client.aclose()


async def lose_dequeue(proxy: FaultProxy, broker: Broker, count: int) -> None:
    proxy.cut_after(DEQUEUE)
    with pytest.raises((RedisError, OSError)):
        await broker.dequeue("default", count, owner="w")
    assert proxy.cuts >= 1


async def test_the_next_dequeue_brings_the_lost_tasks_in_their_order(
    bench: Bench, proxy: FaultProxy, shaky: RedisClient
) -> None:
    ids = await bench.enqueue(*"abcde")
    broker = Broker(shaky)
    await lose_dequeue(proxy, broker, 3)
    assert (await bench.size("active"), await bench.size("lease")) == (3, 3)
    with capture_logs() as logs:
        result = await broker.dequeue("default", 10, owner="w")
    assert [task.message.id for task in result.tasks] == ids
    assert [(entry["event"], entry["count"]) for entry in logs] == [("取任务的应答丢失，任务已放回队列", 3)]
    assert (await bench.size("active"), await bench.size("lease")) == (5, 5)


async def test_tasks_of_others_are_left_alone(bench: Bench, proxy: FaultProxy, shaky: RedisClient) -> None:
    first, second, third = await bench.enqueue(*"abc")
    broker = Broker(shaky)
    await broker.dequeue("default", 1, owner="w")  # of the same owner, but answered
    await lose_dequeue(proxy, broker, 1)
    await bench.broker.dequeue("default", 1, owner="other")
    assert await broker.put_back_unanswered("default") == 1
    assert await bench.ids("pending") == [second]
    assert sorted(await bench.ids("active")) == sorted([first, third])


async def test_a_cancelled_dequeue_is_a_lost_one(bench: Bench, proxy: FaultProxy, shaky: RedisClient) -> None:
    (task_id,) = await bench.enqueue("a")
    broker = Broker(shaky)
    proxy.stall()
    dequeue = asyncio.create_task(broker.dequeue("default", 1, owner="w"))
    await asyncio.sleep(0.05)
    dequeue.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dequeue
    proxy.resume()
    taken: list[str] = []

    async def found() -> bool:
        taken.extend(task.message.id for task in (await broker.dequeue("default", 1, owner="w")).tasks)
        return bool(taken)

    await wait_until(found, timeout=5, description="the task")
    assert taken == [task_id]


@pytest.mark.parametrize("cuts", [1, 4])
async def test_a_server_runs_every_task_once_though_replies_get_lost(
    bench: Bench, proxy: FaultProxy, shaky: RedisClient, cuts: int
) -> None:
    recorder = Recorder()
    config = ServerConfig(concurrency=10, intervals=PATIENT, shutdown_timeout=timedelta(0))
    server = Server(shaky, bench.blocking, recorder, config)
    await bench.enqueue_many(200)
    proxy.cut_after(DEQUEUE, times=cuts)
    began = time.monotonic()
    await server.start()
    await wait_until(lambda: len(recorder.seen) >= 200, timeout=15, description="all handled")
    assert time.monotonic() - began < 10
    await bench.wait_size("active", 0)
    await server.stop()
    assert proxy.cuts == cuts
    assert set(Counter(task.id for task in recorder.seen).values()) == {1}
    assert await bench.counter("processed") == 200


async def test_a_request_carried_out_late_is_noticed_too(
    bench: Bench, proxy: FaultProxy, shaky: RedisClient
) -> None:
    gate = Gate()
    config = ServerConfig(concurrency=5, intervals=PATIENT, shutdown_timeout=timedelta(0))
    server = Server(shaky, bench.blocking, gate, config)
    await server.start()
    await asyncio.sleep(0.1)
    proxy.stall()
    ids = await bench.enqueue("a", "b")  # the server is woken by its other client, and asks in vain
    await asyncio.sleep(1.5)
    proxy.resume()
    await wait_until(lambda: len(gate.entered) >= 2, timeout=10, description="both run")
    assert sorted(gate.entered) == sorted(ids)
    await server.stop()
    assert sorted(await bench.ids("pending")) == sorted(ids)
