"""Servers, schedulers and cluster nodes as the inspector sees them (inspector.go)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message
from redis.asyncio.cluster import RedisCluster
from redis.crc import key_slot

from junhong_cmp.asynq.asynq_pb2 import SchedulerEnqueueEvent, SchedulerEntry, ServerInfo, WorkerInfo
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.inspector_types import ClusterNodeInfo, ServerStatus
from junhong_cmp.asynq.keys import ALL_SCHEDULERS, ALL_SERVERS, ProcessKeys, queue_keys

_Message = TypeVar("_Message", bound=Message)
_PRIMARY: Final = "primary"


class ProcessReader:
    """A process reader shows who is alive; bad data of others is skipped."""

    def __init__(self, redis: RedisClient, clock: Callable[[], float]) -> None:
        self._redis = redis
        self._clock = clock

    async def servers(self) -> list[ServerStatus]:
        """Return the living servers with their workers."""
        keys = await self._living(ALL_SERVERS)
        pipe = self._redis.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command("GET", key)
            pipe.execute_command("HVALS", ProcessKeys.workers_of(key))
        replies = await pipe.execute(raise_on_error=False)
        servers = []
        for raw, raw_workers in zip(replies[::2], replies[1::2], strict=True):
            info = _decoded(ServerInfo, [raw])
            if info:
                workers = _decoded(WorkerInfo, raw_workers if isinstance(raw_workers, list) else [])
                servers.append(ServerStatus(info[0], tuple(workers)))
        return servers

    async def scheduler_entries(self) -> list[SchedulerEntry]:
        """Return the cron entries of all living schedulers; n schedulers show an entry n times."""
        pipe = self._redis.pipeline(transaction=False)
        for key in await self._living(ALL_SCHEDULERS):
            pipe.execute_command("LRANGE", key, 0, -1)
        replies = await pipe.execute(raise_on_error=False)
        return [entry for raw in replies if isinstance(raw, list) for entry in _decoded(SchedulerEntry, raw)]

    async def enqueue_events(self, entry_id: str, first: int, count: int) -> list[SchedulerEnqueueEvent]:
        """Return firings of a cron entry, newest first."""
        key = ProcessKeys.history(entry_id)
        raw = await self._redis.execute_command("ZREVRANGE", key, first, first + count - 1)
        return _decoded(SchedulerEnqueueEvent, raw)

    async def cluster_nodes(self, queue: str) -> list[ClusterNodeInfo]:
        """Return the nodes that serve the queue, primary first; none if Redis is not a cluster."""
        if not isinstance(self._redis, RedisCluster):
            return []
        await self._redis.initialize()
        nodes = self._redis.nodes_manager.slots_cache[queue_slot(queue)]
        return [
            ClusterNodeInfo(node.name, str(node.host), int(node.port), node.server_type == _PRIMARY)
            for node in nodes
        ]

    async def _living(self, registry: str) -> list[str]:
        """Return the keys of the processes whose entry in a registry has not expired."""
        members = await self._redis.execute_command("ZRANGEBYSCORE", registry, int(self._clock()), "+inf")
        return sorted(member.decode(errors="replace") for member in members)


def queue_slot(queue: str) -> int:
    """Return the cluster slot all keys of a queue lie in."""
    return int(key_slot(queue_keys(queue).prefix.encode()))


def _decoded(kind: type[_Message], raws: Sequence[Any]) -> list[_Message]:
    """Decode what can be decoded; a reply may be missing or an error."""
    messages = []
    for raw in raws:
        if isinstance(raw, bytes):
            try:
                messages.append(kind.FromString(raw))
            except DecodeError:
                continue
    return messages
