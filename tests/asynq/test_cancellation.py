import asyncio
from typing import Any

import pytest
from redis.asyncio import Connection
from redis.exceptions import DataError

from junhong_cmp.asynq.cancellation import CancellableConnection, CancellableSSLConnection
from junhong_cmp.asynq.connection import RedisClient, open_redis


async def ping_for_ever(client: RedisClient) -> None:
    while True:
        await client.execute_command("PING")


async def pipeline_for_ever(client: RedisClient) -> None:
    while True:
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("PING")
        await pipe.execute(raise_on_error=False)


@pytest.mark.single_node("its commands name no key")
async def test_a_cancellation_ends_a_task_at_any_moment_of_a_command(redis_url: str) -> None:
    client = open_redis(redis_url)
    try:
        for loop_of_commands in (ping_for_ever, pipeline_for_ever):
            for moment in range(40):
                task = asyncio.create_task(loop_of_commands(client))
                for _ in range(moment):
                    await asyncio.sleep(0)
                task.cancel()
                done, _ = await asyncio.wait({task}, timeout=2)
                task.cancel()
                assert done, f"cancelled after {moment} turns of the loop, {loop_of_commands.__name__} ran on"
                assert await client.execute_command("ECHO", "own reply") == b"own reply"
    finally:
        await client.aclose()


async def test_every_kind_of_client_has_such_connections() -> None:
    for url, kind in {
        "redis-cluster://127.0.0.1:1": CancellableConnection,
        "redis-cluster://127.0.0.1:1?tls=true": CancellableSSLConnection,
    }.items():
        client: Any = open_redis(url)
        later = client.nodes_manager.connection_kwargs["connection_class"]
        at_first = [node.connection_class for node in client.startup_nodes]
        assert all(issubclass(one, kind) for one in (later, *at_first))
        await client.aclose()
    for url in (
        "redis://127.0.0.1:1",
        "rediss://127.0.0.1:1",
        "unix:///none.sock",
        "redis-sentinel://127.0.0.1:1?master=m",
        "redis-sentinel://127.0.0.1:1?master=m&tls=true",
    ):
        client = open_redis(url)
        name = client.connection_pool.connection_class.__name__
        assert name.startswith("Cancellable"), url
        await client.aclose()


async def test_commands_are_packed_as_redis_packs_them() -> None:
    plain, ours = Connection(), CancellableConnection()
    for command in (
        ("CLUSTER SLOTS",),
        ("CLIENT SETNAME", "名"),
        ("EVALSHA", "a" * 40, 1, "k", b"\x00\xff", 1.5, -3, ""),
        ("SET", "k", memoryview(b"view")),
    ):
        assert b"".join(ours.pack_command(*command)) == b"".join(plain.pack_command(*command))
    with pytest.raises(DataError):
        ours.pack_command("SET", "k", None)
