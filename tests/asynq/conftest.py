"""What several test files of the task queue are given."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from tests.redis_servers import free_ports, redis_program
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import open_redis


@pytest.fixture
async def cluster(data_folder: Path) -> AsyncIterator[Any]:
    """A client of a Redis Cluster of one node, whatever else the tests run on."""
    port, bus = free_ports(2)
    arguments = {
        "port": port,
        "cluster-port": bus,
        "cluster-enabled": "yes",
        "bind": "127.0.0.1",
        "dir": data_folder,
    }
    command = [str(redis_program()), "--save", ""]
    for name, value in arguments.items():
        command += [f"--{name}", str(value)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    node = Redis(port=port)
    try:
        await wait_until(lambda: _formed(node), timeout=15, description="the cluster answers")
        client = open_redis(f"redis-cluster://127.0.0.1:{port}")
        yield client
        await client.aclose()
    finally:
        await node.aclose()
        process.terminate()
        await asyncio.wait_for(process.wait(), 10)


async def _formed(node: Any) -> bool:
    try:
        info: bytes = await node.execute_command("CLUSTER", "INFO")
        if b"cluster_slots_assigned:0" in info:
            await node.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    except RedisError:
        return False
    return b"cluster_state:ok" in info
