"""The Sentinel form of the URL against a real Sentinel, through a failover."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from tests.redis_servers import redis_program
from tests.waiting import wait_until

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.task import EnqueueOptions, Task


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


async def run(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        str(redis_program()), *arguments, stdout=asyncio.subprocess.DEVNULL
    )


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await asyncio.wait_for(process.wait(), 10)


@pytest.fixture
async def fleet(data_folder: Path) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """A primary, its replica and a Sentinel; the URL, and the primary to kill."""
    primary_port, replica_port, sentinel_port = free_ports(3)
    settings = data_folder / "sentinel.conf"
    settings.write_text(
        f"port {sentinel_port}\nbind 127.0.0.1\ndir {data_folder}\n"
        f"sentinel monitor main 127.0.0.1 {primary_port} 1\n"
        "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
    )
    plain = (
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(data_folder),
        "--repl-diskless-sync-delay",
        "0",
    )
    primary = await run("--port", str(primary_port), *plain)
    replica = await run("--port", str(replica_port), "--replicaof", f"127.0.0.1 {primary_port}", *plain)
    sentinel = await run(str(settings), "--sentinel")
    client = Redis(port=sentinel_port)
    try:
        await wait_until(lambda: replica_known(client), timeout=20, description="the replica is known")
        yield f"redis-sentinel://127.0.0.1:{sentinel_port}/0?master=main", primary
    finally:
        await client.aclose()
        for process in (sentinel, replica, primary):
            await end(process)


async def replica_known(sentinel: Any) -> bool:
    try:
        replicas = await sentinel.sentinel_slaves("main")
    except RedisError:
        return False
    return any(replica["master-link-status"] == "ok" for replica in replicas)


async def test_a_client_follows_the_primary(fleet: tuple[str, asyncio.subprocess.Process]) -> None:
    url, primary = fleet
    redis = open_redis(url)
    client = Client(redis)
    await client.enqueue(Task("t"), EnqueueOptions(task_id="before"))
    await end(primary)

    async def works_again() -> bool:
        try:
            await client.enqueue(Task("t"), EnqueueOptions(task_id="after"))
        except RedisError:
            return False
        return True

    await wait_until(works_again, timeout=30, description="the promoted replica takes the task")
    await redis.aclose()
