"""Acks: workers hand their tasks back (internal/rdb: Done, MarkAsComplete, Retry, Archive, Requeue)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.broker_types import Ack, AckKind, AckOutcome
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import QueueKeys, queue_keys
from junhong_cmp.asynq.message import encode
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg

_ACK: Final = LuaScript.load("junhong_cmp.asynq", "_lock", "_trim", "_counters", "ack")
_CHUNK: Final = 500
_MAX_INT32: Final = 2**31 - 1
_MAX_ERROR_BYTES: Final = 8 * 1024
_KEEP_MESSAGE: Final = frozenset({AckKind.DONE, AckKind.REQUEUE, AckKind.POSTPONE})
_OUTCOMES: Final = {1: AckOutcome.OK, 0: AckOutcome.SUPERSEDED, -1: AckOutcome.MISSING}


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How many archived tasks are kept, and how long."""

    size: int
    age: timedelta


class AckWriter:
    """An ack writer moves tasks out of ``active``, as long as they are still their worker's."""

    def __init__(
        self,
        redis: RedisClient,
        *,
        archive: ArchiveLimits,
        stats_ttl: timedelta,
        clock: Callable[[], float],
    ) -> None:
        self._redis = redis
        self._archive = archive
        self._stats_ttl_s = int(stats_ttl.total_seconds())
        self._clock = clock

    async def ack(self, queue: str, acks: Sequence[Ack]) -> list[AckOutcome]:
        """Write acks; see :meth:`Broker.ack`."""
        outcomes: list[AckOutcome] = []
        for start in range(0, len(acks), _CHUNK):
            outcomes += await self._ack_chunk(queue, acks[start : start + _CHUNK])
        return outcomes

    async def _ack_chunk(self, queue: str, acks: Sequence[Ack]) -> list[AckOutcome]:
        keys = queue_keys(queue)
        now = self._clock()
        script_keys = _queue_script_keys(keys, now)
        args: list[ScriptArg] = [
            keys.prefix,
            int(now),
            int(now * 1e9),
            int(now) + self._stats_ttl_s,
            int(now - self._archive.age.total_seconds()),
            self._archive.size,
        ]
        for ack in acks:
            task = ack.task
            message = task.message
            task_key = keys.task(message.id)
            if ack.kind is AckKind.DONE and not message.unique_key and not ack.expired_before:
                script_keys.append(task_key)
                args += ("", task.token, task.digest)
                continue
            script_keys += (task_key, lock_key(keys, message, task_key))
            args += (ack.kind, task.token, task.digest, ack.expired_before)
            args += (_score(ack, now), _rewritten(ack, now), int(ack.is_failure))
        return [_OUTCOMES[code] for code in await _ACK.run(self._redis, script_keys, args)]


def _queue_script_keys(keys: QueueKeys, now: float) -> list[str]:
    day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    return [
        keys.active,
        keys.lease,
        keys.pending,
        keys.retry,
        keys.archived,
        keys.completed,
        keys.processed,
        keys.failed,
        keys.processed_on(day),
        keys.failed_on(day),
    ]


def lock_key(keys: QueueKeys, message: TaskMessage, task_key: str) -> str:
    """Return the unique lock, or the task's key for "none": a key of another slot would fail the script."""
    return message.unique_key if message.unique_key.startswith(keys.prefix) else task_key


def _score(ack: Ack, now: float) -> int:
    if ack.kind is AckKind.COMPLETE:
        return int(now) + ack.task.message.retention
    if ack.kind is AckKind.RETRY:
        return ack.at if ack.at is not None else int(now)
    return int(now)


def _rewritten(ack: Ack, now: float) -> bytes:
    """Return the message to store, ``b""`` to leave it: only some transitions rewrite it (rdb.go)."""
    if ack.kind in _KEEP_MESSAGE:
        return b""
    message = TaskMessage()
    message.CopyFrom(ack.task.message)
    if ack.kind is AckKind.COMPLETE:
        message.completed_at = int(now)
        return encode(message)
    message.error_msg = _storable(ack.error)
    message.last_failed_at = int(now)
    if ack.kind is AckKind.RETRY and ack.is_failure:
        message.retried = min(message.retried + 1, _MAX_INT32)
    return encode(message)


def _storable(error: str) -> str:
    """Return an error text any message can hold: too long it would get the task quarantined for its size.

    Lone surrogates, which file names and broken answers bring along, cannot be encoded at all.
    """
    return error.encode(errors="replace")[:_MAX_ERROR_BYTES].decode(errors="ignore")
