"""The inspector reads what goes on: queues, servers, cron entries (inspector.go, internal/rdb/inspect.go)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from junhong_cmp.asynq.asynq_pb2 import SchedulerEnqueueEvent, SchedulerEntry, ServerInfo, WorkerInfo
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import ALL_QUEUES, ALL_SCHEDULERS, ALL_SERVERS, ProcessKeys, queue_keys
from junhong_cmp.asynq.scripting import LuaScript

_Message = TypeVar("_Message", bound=Message)
_QUEUE_INFO: Final = LuaScript.load("junhong_cmp.asynq", "queue_info")


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """The figures of one queue; ``latency`` is how long the oldest pending task has waited."""

    queue: str
    pending: int
    active: int
    scheduled: int
    retry: int
    archived: int
    completed: int
    aggregating: int
    paused: bool
    latency: timedelta
    processed_today: int
    failed_today: int
    processed_total: int
    failed_total: int

    @property
    def size(self) -> int:
        """All tasks that are stored, whatever their state."""
        waiting = self.pending + self.scheduled + self.retry + self.aggregating
        return waiting + self.active + self.archived + self.completed


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A living server and the tasks it works on."""

    info: ServerInfo
    workers: tuple[WorkerInfo, ...]


@dataclass(frozen=True, slots=True)
class DailyStats:
    """What a queue did on one UTC day."""

    queue: str
    day: date
    processed: int
    failed: int


class Inspector:
    """An inspector reads and never writes; bad data of others is skipped. ``clock`` gives unix seconds."""

    def __init__(self, redis: RedisClient, *, clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._clock = clock

    async def queues(self) -> list[QueueInfo]:
        """Return the figures of all registered queues by name, in two round trips however many there are.

        Memory is left out on purpose: ``MEMORY USAGE`` is slow, and forbidden on managed servers.
        """
        names = sorted(raw.decode() for raw in await self._redis.execute_command("SMEMBERS", ALL_QUEUES))
        now = self._clock()
        replies = await _QUEUE_INFO.run_many(self._redis, [_info_call(name, now) for name in names])
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return [_queue_info(name, reply, now) for name, reply in zip(names, replies, strict=True)]

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

    async def enqueue_events(self, entry_id: str, limit: int = 30) -> list[SchedulerEnqueueEvent]:
        """Return the last firings of a cron entry, newest first."""
        raw = await self._redis.execute_command("ZREVRANGE", ProcessKeys.history(entry_id), 0, limit - 1)
        return _decoded(SchedulerEnqueueEvent, raw)

    async def history(self, queue: str, days: int = 7) -> list[DailyStats]:
        """Return what a queue did on each of the last ``days`` UTC days, today first."""
        keys = queue_keys(queue)
        today = datetime.fromtimestamp(self._clock(), UTC).date()
        dates = [today - timedelta(days=back) for back in range(days)]
        names = [key for day in dates for key in (keys.processed_on(str(day)), keys.failed_on(str(day)))]
        if not names:
            return []
        counts = [int(raw or 0) for raw in await self._redis.execute_command("MGET", *names)]
        return [
            DailyStats(queue, day, processed, failed)
            for day, processed, failed in zip(dates, counts[::2], counts[1::2], strict=True)
        ]

    async def _living(self, registry: str) -> list[str]:
        """Return the keys of the processes whose entry in a registry has not expired."""
        members = await self._redis.execute_command("ZRANGEBYSCORE", registry, int(self._clock()), "+inf")
        return sorted(member.decode(errors="replace") for member in members)


def _info_call(queue: str, now: float) -> tuple[list[str], list[str]]:
    keys = queue_keys(queue)
    day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    names = [keys.pending, keys.active, keys.scheduled, keys.retry, keys.archived, keys.completed]
    names += [keys.processed, keys.failed, keys.processed_on(day), keys.failed_on(day)]
    return [*names, keys.paused, keys.groups], [keys.prefix]


def _queue_info(queue: str, reply: Sequence[Any], now: float) -> QueueInfo:
    since_ns = int(reply[12]) if reply[12].isdigit() else None
    waited_s = max(0.0, now - since_ns / 1e9) if since_ns is not None else 0.0
    return QueueInfo(
        queue=queue,
        pending=reply[0],
        active=reply[1],
        scheduled=reply[2],
        retry=reply[3],
        archived=reply[4],
        completed=reply[5],
        aggregating=reply[11],
        paused=bool(reply[10]),
        latency=timedelta(seconds=waited_s),
        processed_total=_count(reply[6]),
        failed_total=_count(reply[7]),
        processed_today=_count(reply[8]),
        failed_today=_count(reply[9]),
    )


def _count(raw: bytes) -> int:
    return int(raw) if raw.isdigit() else 0


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
