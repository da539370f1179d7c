"""Leases: tasks are taken, kept and, once their worker is gone, found again (rdb.go: Dequeue)."""

import hashlib
import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog
from redis.exceptions import ResponseError

from junhong_cmp.asynq.broker_types import QUARANTINE_REASONS, DequeueResult, LeasedTask
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import InvalidMessageError, decode
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg
from junhong_cmp.asynq.unanswered import UnansweredDequeues

log = structlog.stdlib.get_logger(__name__)

_DEQUEUE: Final = LuaScript.load("junhong_cmp.asynq", "dequeue")
_EXTEND: Final = LuaScript.load("junhong_cmp.asynq", "extend_leases")
_EXPIRED: Final = LuaScript.load("junhong_cmp.asynq", "expired_leases")
_QUARANTINE: Final = LuaScript.load("junhong_cmp.asynq", "quarantine")
_WRITE_RESULT: Final = LuaScript.load("junhong_cmp.asynq", "write_result")
_CHUNK: Final = 500


class Leases:
    """Leases give a task to one worker for a time, and to another when that time ends unrenewed."""

    def __init__(
        self, redis: RedisClient, lease: timedelta, max_message_bytes: int, clock: Callable[[], float]
    ) -> None:
        self._redis = redis
        self._lease_s = int(lease.total_seconds())
        self._max_message_bytes = max_message_bytes
        self._clock = clock
        self._unanswered = UnansweredDequeues(redis, self._lease_s)
        # Two leases of one task must never share a token, whatever owner names the callers choose.
        self._tokens = (f"{uuid.uuid4().hex[:12]}:{number}" for number in itertools.count(1))

    async def dequeue(self, queue: str, count: int, *, owner: str) -> DequeueResult:
        """Take up to ``count`` tasks; see :meth:`Broker.dequeue`."""
        if count <= 0:
            return DequeueResult()
        if self._unanswered:
            await self._unanswered.put_back(queue, self._clock())
        token = f"{owner}:{next(self._tokens)}"
        try:
            return await self._dequeue(queue, count, token)
        except ResponseError:  # refused: nothing was taken
            raise
        except BaseException:  # also a cancellation: the script may have run all the same
            self._unanswered.add(queue, token)
            raise

    async def put_back_unanswered(self, queue: str) -> int:
        """Put back tasks nobody knows of; see :meth:`Broker.put_back_unanswered`."""
        return await self._unanswered.put_back(queue, self._clock()) if self._unanswered else 0

    async def _dequeue(self, queue: str, count: int, token: str) -> DequeueResult:
        keys = queue_keys(queue)
        now = self._clock()
        lease_until = int(now) + self._lease_s
        paused, taken, refused, ghosts = await _DEQUEUE.run(
            self._redis,
            [keys.pending, keys.active, keys.lease, keys.paused, keys.archived],
            [keys.task_prefix, count, int(now), lease_until, token, self._max_message_bytes],
        )
        result = DequeueResult(paused=bool(paused), ghosts=[_text(ghost) for ghost in ghosts])
        result.quarantined = [
            (_text(task_id), QUARANTINE_REASONS[reason]) for task_id, reason in _rows(refused, 2)
        ]
        bad: list[tuple[bytes, str, str]] = []
        for task_id, raw in _rows(taken, 2):
            try:
                result.tasks.append(_leased(queue, task_id, raw, token, lease_until))
            except InvalidMessageError as error:
                bad.append((task_id, token, str(error)))
        result.quarantined += await self._quarantine(queue, bad)
        return result

    async def extend(self, queue: str, tasks: Sequence[LeasedTask]) -> list[str]:
        """Renew leases; see :meth:`Broker.extend_leases`."""
        keys = queue_keys(queue)
        lost: list[str] = []
        for start in range(0, len(tasks), _CHUNK):
            chunk = tasks[start : start + _CHUNK]
            lease_until = int(self._clock()) + self._lease_s
            args: list[ScriptArg] = [lease_until]
            for task in chunk:
                args += (task.message.id, task.token, task.digest)
            renewed = await _EXTEND.run(
                self._redis, [keys.lease, *(keys.task(task.message.id) for task in chunk)], args
            )
            for task, kept in zip(chunk, renewed, strict=True):
                if kept:
                    task.lease_until = lease_until
                else:
                    lost.append(task.message.id)
        return lost

    async def expired(self, queue: str, cutoff_s: float, limit: int) -> list[LeasedTask]:
        """Return tasks whose lease ran out; see :meth:`Broker.expired_leases`."""
        keys = queue_keys(queue)
        found = await _EXPIRED.run(
            self._redis,
            [keys.lease, keys.active],
            [keys.task_prefix, int(cutoff_s), limit, self._max_message_bytes],
        )
        tasks: list[LeasedTask] = []
        bad: list[tuple[bytes, str, str]] = []
        for task_id, expiry, raw, owner, recoveries in _rows(found, 5):
            if not raw:
                bad.append((task_id, _text(owner), QUARANTINE_REASONS[b"size"]))
                continue
            try:
                task = _leased(queue, task_id, raw, _text(owner), float(expiry))
                task.recovered_at = tuple(int(at) for at in recoveries.split() if at.isdigit())
                tasks.append(task)
            except InvalidMessageError as error:
                bad.append((task_id, _text(owner), str(error)))
        for name, reason in await self._quarantine(queue, bad):
            log.warning("任务无法解码，已隔离", queue=queue, task_id=name, reason=reason)
        return tasks

    async def write_result(self, queue: str, task_id: str, data: bytes, *, token: str) -> bool:
        """Store a result; see :meth:`Broker.write_result`."""
        key = queue_keys(queue).task(task_id)
        return bool(await _WRITE_RESULT.run(self._redis, [key], [data, token]))

    async def _quarantine(self, queue: str, bad: Sequence[tuple[bytes, str, str]]) -> list[tuple[str, str]]:
        """Archive tasks, each (id, token, reason), whose message cannot be used; return (id, reason)."""
        if not bad:
            return []
        keys = queue_keys(queue)
        args: list[ScriptArg] = [int(self._clock())]
        for task_id, token, reason in bad:
            args += (task_id, token, reason)
        hashes = [keys.task_prefix.encode() + task_id for task_id, _, _ in bad]
        moved = await _QUARANTINE.run(self._redis, [keys.active, keys.lease, keys.archived, *hashes], args)
        return [
            (_text(task_id), reason) for (task_id, _, reason), done in zip(bad, moved, strict=True) if done
        ]


def _leased(queue: str, task_id: bytes, raw: bytes, token: str, lease_until: float) -> LeasedTask:
    message = decode(raw, task_id=_text(task_id), queue=queue)
    digest = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    return LeasedTask(message=message, queue=queue, token=token, lease_until=lease_until, digest=digest)


def _text(raw: bytes) -> str:
    """Decode an id or token for people: a foreign id need not be UTF-8."""
    return raw.decode(errors="replace")


def _rows(flat: Sequence[Any], width: int) -> Iterator[Sequence[Any]]:
    """Cut a flat reply into rows of ``width`` cells."""
    return (flat[start : start + width] for start in range(0, len(flat), width))
