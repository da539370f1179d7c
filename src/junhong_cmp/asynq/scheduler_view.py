"""What a scheduler shows of itself to the Go tools: its entries and their history (scheduler.go, rdb.go)."""

import os
import socket
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from junhong_cmp.asynq.asynq_pb2 import SchedulerEnqueueEvent, SchedulerEntry
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import ALL_SCHEDULERS, ProcessKeys
from junhong_cmp.asynq.scripting import LuaScript

_WRITE: Final = LuaScript.load("junhong_cmp.asynq", "write_scheduler_entries")
_RECORD: Final = LuaScript.load("junhong_cmp.asynq", "record_enqueue_event")
_MAX_EVENTS: Final = 1000
_TTL: Final = timedelta(seconds=20)
_GO_ZERO_TIME_S: Final = -62_135_596_800
"""0001-01-01: Go readers show "never"; without the field they show 1970."""


class SchedulerView:
    """A scheduler view keeps the entries of one scheduler visible while it lives, and no longer."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._keys = ProcessKeys(f"{socket.gethostname() or 'unknown-host'}:{os.getpid()}:{uuid.uuid4()}")
        self._written: tuple[bytes, ...] = ()

    async def show(self, entries: Sequence[SchedulerEntry], now: float) -> None:
        """Write the entries; unchanged ones are only kept alive."""
        ttl_s = int(_TTL.total_seconds())
        encoded = tuple(entry.SerializeToString(deterministic=True) for entry in entries)
        await self._redis.execute_command("ZADD", ALL_SCHEDULERS, int(now) + ttl_s, self._keys.scheduler)
        if encoded == self._written and await self._redis.execute_command(
            "EXPIRE", self._keys.scheduler, ttl_s
        ):
            return
        await _WRITE.run(self._redis, [self._keys.scheduler], [ttl_s, *encoded])
        self._written = encoded

    async def clear(self) -> None:
        """Remove this scheduler's entries; those of others and all history stay."""
        pipe = self._redis.pipeline(transaction=False)
        pipe.execute_command("ZREM", ALL_SCHEDULERS, self._keys.scheduler)
        pipe.execute_command("DEL", self._keys.scheduler)
        await pipe.execute()
        self._written = ()

    async def record(self, entry_id: str, task_id: str, now: float) -> None:
        """Add a firing to the history of an entry."""
        event = SchedulerEnqueueEvent(task_id=task_id, enqueue_time=timestamp(now))
        await _RECORD.run(
            self._redis,
            [ProcessKeys.history(entry_id)],
            [int(now), event.SerializeToString(deterministic=True), _MAX_EVENTS],
        )


def timestamp(unix_s: float | None) -> Timestamp:
    """Return a protobuf timestamp; None is Go's zero time."""
    if unix_s is None:
        return Timestamp(seconds=_GO_ZERO_TIME_S)
    seconds = int(unix_s // 1)
    return Timestamp(seconds=seconds, nanos=int((unix_s - seconds) * 1e9))
