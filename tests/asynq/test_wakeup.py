"""An empty queue is watched, not asked; without its watch it is asked."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.asynq.serving import QUICK, Bench, Recorder, open_bench
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import open_blocking_redis
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.asynq.wakeup import Wakeups


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url) as opened:
        yield opened


@pytest.fixture
async def signal() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def wakeups(bench: Bench, signal: asyncio.Event) -> AsyncIterator[Wakeups]:
    watching = Wakeups(bench.blocking, ["default", "other"], QUICK, signal)
    watching.start()
    yield watching
    await watching.stop()


async def blocked_clients(bench: Bench) -> int:
    clients = await bench.redis.execute_command("CLIENT", "LIST")
    text = clients if isinstance(clients, list) else clients.decode().splitlines()
    return sum(
        "blmove" in str(line).lower() and ("flags=b" in str(line) or "'flags': 'b'" in str(line))
        for line in text
    )


@pytest.mark.single_node("lists the clients of one server")
async def test_every_queue_is_ready_at_first_and_nothing_is_watched_unasked(
    bench: Bench, wakeups: Wakeups
) -> None:
    assert wakeups.ready() == ["default", "other"]
    wakeups.found_empty("default")
    assert wakeups.ready() == ["other"]
    await asyncio.sleep(0.05)
    assert await blocked_clients(bench) == 0


async def test_a_watched_queue_wakes_when_a_task_comes_and_its_order_is_kept(
    bench: Bench, wakeups: Wakeups, signal: asyncio.Event
) -> None:
    wakeups.found_empty("default")
    wakeups.watch_sleeping()
    ids = await bench.enqueue("a", "b", "c")
    await asyncio.wait_for(signal.wait(), 5)
    assert "default" in wakeups.ready()
    assert await bench.ids("pending") == ids[::-1]


async def test_a_watch_that_ends_without_a_task_is_asked_for_again(
    wakeups: Wakeups, signal: asyncio.Event
) -> None:
    wakeups.found_empty("default")
    wakeups.watch_sleeping()
    await asyncio.wait_for(signal.wait(), 5)  # the blocking wait of QUICK is over: who has slots may ask
    assert wakeups.ready() == ["other"]


async def test_a_paused_queue_is_looked_at_again_after_a_while(
    wakeups: Wakeups, signal: asyncio.Event
) -> None:
    wakeups.found_paused("other")
    wakeups.watch_sleeping()
    assert wakeups.ready() == ["default"]
    await asyncio.wait_for(signal.wait(), 5)
    assert wakeups.ready() == ["default", "other"]


async def test_without_its_blocking_connection_a_server_polls(bench: Bench) -> None:
    unreachable = open_blocking_redis("redis-socket:///nowhere/redis.sock")
    recorder = Recorder()
    server = Server(bench.redis, unreachable, recorder, ServerConfig(intervals=QUICK))
    bench.servers.append(server)
    await server.start()
    await wait_until(lambda: server.id, description="started")
    for number in range(1, 4):
        await bench.enqueue("a")
        await wait_until(lambda number=number: len(recorder.seen) == number, description="found by asking")
    await server.stop()
    await unreachable.aclose()


async def test_queues_beyond_the_connections_are_polled_together_and_none_is_forgotten(
    redis_url: str, bench: Bench
) -> None:
    names = [f"q{number}" for number in range(40)]
    seen = Recorder()
    few = open_blocking_redis(redis_url, pool_size=4)
    quick = replace(QUICK, unwatched_check=timedelta(seconds=0.05))
    config = ServerConfig(concurrency=4, queues=dict.fromkeys(names, 1), intervals=quick)
    server = Server(bench.redis, few, seen, config)
    with capture_logs() as logs:
        await server.start()
        for number, name in enumerate(names):
            await bench.enqueue("t", queue=name)
            await wait_until(
                lambda n=number: len(seen.seen) == n + 1, timeout=3, description=f"{name} is served"
            )
        await server.stop()
    assert [entry for entry in logs if entry["log_level"] == "warning"] == []
    await few.aclose()


@pytest.mark.single_node("lists the clients of one server")
async def test_the_queues_named_first_have_the_connections(
    redis_url: str, bench: Bench, signal: asyncio.Event
) -> None:
    few = open_blocking_redis(redis_url, pool_size=4)
    watching = Wakeups(few, ["first", "second", "third"], QUICK, signal)
    watching.start()
    for queue in ("first", "second", "third"):
        watching.found_empty(queue)
    watching.watch_sleeping()

    async def two_are_watched() -> bool:
        return await blocked_clients(bench) == 2

    await wait_until(two_are_watched, description="two queues are watched")
    await bench.enqueue("t", queue="third")
    await wait_until(lambda: watching.ready() == ["third"], description="the third is found by looking")
    await watching.stop()
    await few.aclose()


async def test_a_queue_found_empty_twice_takes_one_connection(
    redis_url: str, bench: Bench, signal: asyncio.Event
) -> None:
    """Two fetchers find it empty one after the other; no connection may get lost by that."""
    never_looked_at = replace(QUICK, unwatched_check=timedelta(hours=1))
    few = open_blocking_redis(redis_url, pool_size=4)  # for two watches
    watching = Wakeups(few, ["default", "other"], never_looked_at, signal)
    watching.start()

    async def wakes_up() -> None:
        await bench.enqueue("x")
        await asyncio.wait_for(signal.wait(), 5)
        assert "default" in watching.ready()
        signal.clear()
        await bench.redis.execute_command("DEL", queue_keys("default").pending)

    for _ in range(2):
        watching.found_empty("default")
        watching.watch_sleeping()
    await wakes_up()
    for queue in ("other", "default"):
        watching.found_empty(queue)
        watching.watch_sleeping()
    await wakes_up()
    await watching.stop()
    await few.aclose()
