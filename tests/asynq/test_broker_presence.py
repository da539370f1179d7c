from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.asynq import wire
from tests.asynq.wire import NOW, PREFIX, QUEUE, Clock
from tests.waiting import wait_until

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.broker import Broker

SERVER = "asynq:servers:{h:7:s}"
WORKERS = "asynq:workers:{h:7:s}"


@pytest.fixture
def broker(redis: Redis) -> Broker:
    return Broker(redis, clock=Clock())


async def test_a_server_shows_itself_and_its_workers(redis: Redis, broker: Broker) -> None:
    info = ServerInfo(host="h", pid=7, server_id="s", queues={"q": 2}, status="active")
    workers = [WorkerInfo(task_id="a", queue="q"), WorkerInfo(task_id="b", queue="q")]

    await broker.write_server_state(info, workers, timedelta(seconds=10))

    shown: Any = await redis.get(SERVER)
    assert ServerInfo.FromString(shown) == info
    assert set(await redis.hkeys(WORKERS)) == {b"a", b"b"}
    assert 0 < await redis.ttl(SERVER) <= 10
    assert 0 < await redis.ttl(WORKERS) <= 10
    assert await redis.zscore("asynq:servers", SERVER) == int(NOW) + 10
    assert await redis.zscore("asynq:workers", WORKERS) == int(NOW) + 10

    await broker.write_server_state(info, workers[:1])
    assert await redis.hkeys(WORKERS) == [b"a"]
    await broker.write_server_state(info, [])
    assert not await redis.exists(WORKERS)


async def test_clearing_removes_only_this_server(redis: Redis, broker: Broker) -> None:
    info = ServerInfo(host="h", pid=7, server_id="s")
    other = ServerInfo(host="h", pid=7, server_id="other")
    for one in (info, other):
        await broker.write_server_state(one, [WorkerInfo(task_id="a")])
    await broker.clear_server_state(info)
    assert await redis.zrange("asynq:servers", 0, -1) == [b"asynq:servers:{h:7:other}"]
    assert not await redis.exists(SERVER, WORKERS)


async def test_queues_are_registered(redis: Redis, broker: Broker) -> None:
    await broker.register_queue("a", "b")
    await broker.register_queue()
    assert await redis.smembers("asynq:queues") == {b"a", b"b"}


async def test_pause_and_unpause(redis: Redis, broker: Broker) -> None:
    assert await broker.pause(QUEUE)
    assert not await broker.pause(QUEUE)
    assert await redis.get(PREFIX + "paused") == str(int(NOW)).encode()
    assert await broker.unpause(QUEUE)
    assert not await broker.unpause(QUEUE)


async def test_pending_tasks_are_counted(redis: Redis, broker: Broker) -> None:
    assert await broker.pending_count(QUEUE) == 0
    await wire.put(redis, "a", "b")
    assert await broker.pending_count(QUEUE) == 2


async def test_a_cancel_reaches_the_subscribers(redis: Redis, broker: Broker) -> None:
    assert await broker.publish_cancel("a") == 0
    async with redis.pubsub() as pubsub:
        await pubsub.subscribe("asynq:cancel")
        await pubsub.get_message(timeout=1)
        assert await broker.publish_cancel("a") == 1
        heard: list[bytes] = []

        async def listen() -> bool:
            message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=0.1)
            if message is not None:
                heard.append(message["data"])
            return bool(heard)

        await wait_until(listen, timeout=5, description="the cancel message")
    assert heard == [b"a"]
