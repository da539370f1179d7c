"""The Redis that tests run on: embedded Valkey, another program, or a cluster of three nodes of either.

``JUNHONG_TEST_REDIS``          name or path of a server program to take instead, such as ``redis-server``
``JUNHONG_TEST_REDIS_CLUSTER``  ``1``: a cluster instead of one server
"""

import asyncio
import itertools
import os
import shutil
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import redis as sync_redis
from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisError

from junhong_cmp.embedded.binaries import find_redis_program
from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.embedded.redis_server import EmbeddedRedis, RedisPlace

_NODES = 3
_SLOTS = 16384
_TEST_ARGUMENTS = ("--appendfsync", "no", "--enable-debug-command", "local")
_FORMED_WITHIN_S = 60.0
_POLL_S = 0.05

clustered = os.environ.get("JUNHONG_TEST_REDIS_CLUSTER", "") == "1"
"""Whether the tests of this run are given a cluster."""


class RedisFixture(Protocol):
    """A Redis for tests can be stopped, killed and started again; its data stay."""

    @property
    def url(self) -> str: ...
    @property
    def running(self) -> bool: ...
    @property
    def processes(self) -> Sequence[ChildProcess]: ...
    @property
    def process(self) -> ChildProcess | None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def kill(self) -> None: ...
    async def restart(self) -> None: ...
    def empty(self) -> None: ...
    async def command(self, *words: str | int) -> Any: ...
    def open(self) -> Any: ...


def redis_program() -> Path:
    """Return the server program of this run; a missing one is an error, never a silent fallback."""
    wanted = os.environ.get("JUNHONG_TEST_REDIS")
    if not wanted:
        return find_redis_program()
    found = shutil.which(wanted)
    if found is None:
        message = f"JUNHONG_TEST_REDIS={wanted}: no such program on PATH"
        raise FileNotFoundError(message)
    return Path(found).absolute()  # the name matters: a program called redis-check-rdb checks files


def free_ports(count: int) -> list[int]:
    """Return ports nobody listens on; all are held until the last is found, so they differ."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def open_test_redis(folder: Path) -> RedisFixture:
    """Return the Redis that the environment asks for; it is not started yet."""
    return ThreeNodeCluster(folder) if clustered else SingleRedis(folder)


class SingleRedis(EmbeddedRedis):
    """A single Redis listens on a socket in its folder, and on a loopback port if it is given one."""

    def __init__(self, folder: Path, *, arguments: Sequence[str] = ()) -> None:
        self.socket_path = folder / "redis.sock"
        super().__init__(
            RedisPlace(
                data_folder=folder / "redis",
                socket_path=self.socket_path,
                log_path=folder / "redis.log",
                extra_arguments=(*_TEST_ARGUMENTS, *arguments),
                program=redis_program(),
            )
        )

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.running

    @property
    def processes(self) -> Sequence[ChildProcess]:
        return [self.process] if self.process is not None else []

    def empty(self) -> None:
        with sync_redis.Redis.from_url(self.url) as client:
            client.script_flush()
            client.flushall()

    def open(self) -> Redis:
        return Redis.from_url(self.url, decode_responses=False)

    async def command(self, *words: str | int) -> Any:
        """Send a command that names no key, such as an administrator's."""
        client: Any = self.open()
        async with client:
            return await client.execute_command(*words)


class _WholeCluster(RedisCluster):
    """A client that lists the keys of all nodes, where redis-py's asks any one of them."""

    async def keys(self, pattern: str = "*") -> list[bytes]:  # type: ignore[override] # awaited alike
        found: list[bytes] = await self.execute_command("KEYS", pattern, target_nodes=RedisCluster.PRIMARIES)
        return found


class ThreeNodeCluster:
    """A three-node cluster shares the slots between three primaries; there are no replicas."""

    process = None

    def __init__(self, folder: Path) -> None:
        ports = free_ports(2 * _NODES)
        self._ports = ports[:_NODES]
        self._nodes = [
            SingleRedis(folder / f"node-{index}", arguments=_cluster_arguments(port, bus))
            for index, (port, bus) in enumerate(zip(self._ports, ports[_NODES:], strict=True))
        ]
        self._buses = ports[_NODES:]
        for index in range(_NODES):
            (folder / f"node-{index}").mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return "redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in self._ports)

    @property
    def running(self) -> bool:
        return all(node.running for node in self._nodes)

    @property
    def processes(self) -> Sequence[ChildProcess]:
        return [process for node in self._nodes for process in node.processes]

    async def start(self) -> None:
        await asyncio.gather(*(node.start() for node in self._nodes if not node.running))
        await self._form()
        await _wait(self._agreed, "the nodes agree on all slots")

    async def stop(self) -> None:
        await asyncio.gather(*(node.stop() for node in self._nodes))

    async def kill(self) -> None:
        await asyncio.gather(*(node.kill() for node in self._nodes))

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def empty(self) -> None:
        for node in self._nodes:
            node.empty()

    async def command(self, *words: str | int) -> Any:
        """Send a command to every node."""
        return [await node.command(*words) for node in self._nodes]

    def open(self) -> Any:
        return _WholeCluster(startup_nodes=[ClusterNode("127.0.0.1", port) for port in self._ports])

    async def _form(self) -> None:
        """Share out the slots and introduce the nodes to each other; done once, the nodes remember it."""
        for index, (node, slots) in enumerate(zip(self._nodes, _shares(), strict=True)):
            if b"cluster_slots_assigned:0" not in await node.command("CLUSTER", "INFO"):
                continue
            await node.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            await node.command("CLUSTER", "ADDSLOTSRANGE", slots.start, slots.stop - 1)
            await self._nodes[0].command(
                "CLUSTER", "MEET", "127.0.0.1", self._ports[index], self._buses[index]
            )

    async def _agreed(self) -> bool:
        try:
            infos = [await node.command("CLUSTER", "INFO") for node in self._nodes]
        except RedisError:
            return False
        return all(
            b"cluster_state:ok" in info and f"cluster_known_nodes:{_NODES}".encode() in info for info in infos
        )


def _cluster_arguments(port: int, bus: int) -> tuple[str, ...]:
    options = {"port": str(port), "cluster-port": str(bus), "bind": "127.0.0.1", "cluster-enabled": "yes"}
    return tuple(part for name, value in options.items() for part in (f"--{name}", value))


def _shares() -> Iterator[range]:
    bounds = [round(_SLOTS * index / _NODES) for index in range(_NODES + 1)]
    return (range(first, last) for first, last in itertools.pairwise(bounds))


async def _wait(condition: Callable[[], Awaitable[bool]], description: str) -> None:
    deadline = time.monotonic() + _FORMED_WITHIN_S
    while not await condition():
        if time.monotonic() > deadline:
            message = f"not within {_FORMED_WITHIN_S:g} s: {description}"
            raise AssertionError(message)
        await asyncio.sleep(_POLL_S)
