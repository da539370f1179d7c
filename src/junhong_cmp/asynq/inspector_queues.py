"""Queues as the inspector sees and switches them (inspector.go, internal/rdb/inspect.go)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from junhong_cmp.asynq import broker_presence
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.inspector_errors import QueueNotEmptyError, QueueNotFoundError, QueuePauseError
from junhong_cmp.asynq.inspector_places import place_args, place_keys
from junhong_cmp.asynq.inspector_scan import scan_keys
from junhong_cmp.asynq.inspector_types import DailyStats, GroupInfo, QueueInfo
from junhong_cmp.asynq.keys import ALL_QUEUES, queue_keys
from junhong_cmp.asynq.scripting import LuaScript

_QUEUE_INFO: Final = LuaScript.load("junhong_cmp.asynq", "queue_info")
_CLOSE: Final = LuaScript.load("junhong_cmp.asynq", "_places", "close_queue")
_GROUPS_AT_ONCE: Final = 500


class QueueDesk:
    """A queue desk reads the figures of queues, pauses and deletes them."""

    def __init__(self, redis: RedisClient, clock: Callable[[], float]) -> None:
        self._redis = redis
        self._clock = clock

    async def names(self) -> list[str]:
        """Return the registered queues by name; one whose name is no UTF-8 hides no other."""
        found = await self._redis.execute_command("SMEMBERS", ALL_QUEUES)
        return sorted({raw.decode(errors="replace") for raw in found})

    async def require(self, queue: str) -> None:
        """Raise :class:`QueueNotFoundError` unless the queue is registered."""
        if not await self._redis.execute_command("SISMEMBER", ALL_QUEUES, queue):
            raise QueueNotFoundError(queue)

    async def figures(self, names: Sequence[str]) -> list[QueueInfo]:
        """Return the figures of queues in one round trip, however many; many groups cost another."""
        now = self._clock()
        replies = await _QUEUE_INFO.run_many(self._redis, [_figures_call(name, now) for name in names])
        infos = []
        for name, reply in zip(names, replies, strict=True):
            if isinstance(reply, Exception):
                raise reply
            aggregating = reply[11]
            if aggregating < 0:
                aggregating = sum(group.size for group in await self.groups(name))
            infos.append(_queue_info(name, reply, aggregating, now))
        return infos

    async def groups(self, queue: str) -> list[GroupInfo]:
        """Return the groups of a queue with their sizes, by name."""
        keys = queue_keys(queue)
        names = sorted(await self._redis.execute_command("SMEMBERS", keys.groups))
        groups = []
        for start in range(0, len(names), _GROUPS_AT_ONCE):
            chunk = names[start : start + _GROUPS_AT_ONCE]
            pipe = self._redis.pipeline(transaction=False)
            for name in chunk:
                pipe.execute_command("ZCARD", keys.group_prefix.encode() + name)
            sizes = await pipe.execute()
            groups += [
                GroupInfo(name.decode(errors="replace"), size)
                for name, size in zip(chunk, sizes, strict=True)
            ]
        return groups

    async def history(self, queue: str, days: int) -> list[DailyStats]:
        """Return what a queue did on each of the last ``days`` UTC days, today first."""
        keys = queue_keys(queue)
        today = datetime.fromtimestamp(self._clock(), UTC).date()
        dates = [today - timedelta(days=back) for back in range(days)]
        names = [key for day in dates for key in (keys.processed_on(str(day)), keys.failed_on(str(day)))]
        if not names:
            return []
        counts = [_count(raw or b"") for raw in await self._redis.execute_command("MGET", *names)]
        return [
            DailyStats(queue, day, processed, failed)
            for day, processed, failed in zip(dates, counts[::2], counts[1::2], strict=True)
        ]

    async def pause(self, queue: str) -> None:
        """Stop all servers from taking tasks of the queue."""
        if not await broker_presence.pause(self._redis, queue, self._clock()):
            raise QueuePauseError(queue, paused=True)

    async def unpause(self, queue: str) -> None:
        """Undo :meth:`pause`."""
        if not await broker_presence.unpause(self._redis, queue):
            raise QueuePauseError(queue, paused=False)

    async def delete(self, queue: str, *, force: bool) -> int:
        """Delete a queue with every key of it; see :meth:`Inspector.delete_queue`."""
        await self.require(queue)
        keys = queue_keys(queue)
        closed, active, others = await _CLOSE.run(
            self._redis, [*place_keys(keys), keys.paused], [*place_args(keys, self._clock()), int(force)]
        )
        if not closed:
            raise QueueNotEmptyError(queue, active, others)
        # Paused to the end: no worker takes a task of a queue that is half gone.
        paused = keys.paused.encode()
        deleted = 0
        async for found in scan_keys(self._redis, keys.prefix, apart_from=await self._nested(queue)):
            chunk = [key for key in found if key != paused]
            deleted += int(await self._redis.execute_command("UNLINK", *chunk)) if chunk else 0
        await self._redis.execute_command("SREM", ALL_QUEUES, queue)
        await self._redis.execute_command("UNLINK", keys.paused)
        return deleted

    async def _nested(self, queue: str) -> list[str]:
        """Return the prefixes of other queues that begin like this one's; names may hold any character."""
        prefix = queue_keys(queue).prefix
        others = [queue_keys(name).prefix for name in await self.names() if name != queue]
        return [other for other in others if other.startswith(prefix)]


def _figures_call(queue: str, now: float) -> tuple[list[str], list[str]]:
    keys = queue_keys(queue)
    day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    names = [keys.pending, keys.active, keys.scheduled, keys.retry, keys.archived, keys.completed]
    names += [keys.processed, keys.failed, keys.processed_on(day), keys.failed_on(day)]
    return [*names, keys.paused, keys.groups], [keys.prefix]


def _queue_info(queue: str, reply: Sequence[Any], aggregating: int, now: float) -> QueueInfo:
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
        aggregating=aggregating,
        paused=bool(reply[10]),
        latency=timedelta(seconds=waited_s),
        processed_total=_count(reply[6]),
        failed_total=_count(reply[7]),
        processed_today=_count(reply[8]),
        failed_today=_count(reply[9]),
        groups=reply[13],
    )


def _count(raw: bytes) -> int:
    return int(raw) if raw.isdigit() else 0
