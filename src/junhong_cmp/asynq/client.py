"""The client puts tasks into queues (client.go, internal/rdb: Enqueue, Schedule, AddToGroup)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from junhong_cmp.asynq.broker_presence import register_queues
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.errors import (
    AsynqError,
    DuplicateTaskError,
    PayloadTooLargeError,
    TaskIdConflictError,
)
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import PreparedTask, check, compose, encode
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg, ScriptCall
from junhong_cmp.asynq.task import EnqueueOptions, EnqueueResult, EnqueueStatus, Task, TaskInfo

DEFAULT_MAX_PAYLOAD_BYTES: Final = 256 * 1024
_ENQUEUE: Final = LuaScript.load("junhong_cmp.asynq", "_enqueue", "enqueue")
_PLAIN: Final = LuaScript.load("junhong_cmp.asynq", "enqueue_plain")
_NO_OPTIONS: Final = EnqueueOptions()
_CHUNK: Final = 200
"""Small enough for the server to work on one script while the next is made."""
_REGISTER_EVERY_S: Final = 60.0
_STATUSES: Final[Mapping[int, EnqueueStatus]] = {
    1: EnqueueStatus.ENQUEUED,
    0: EnqueueStatus.ID_CONFLICT,
    -1: EnqueueStatus.DUPLICATE,
}


class BulkEnqueueError(AsynqError):
    """Redis failed for a part of a bulk enqueue.

    ``outcomes`` holds, in the order of the request, the result of each task whose script answered and the
    exception for each other. A task of the latter kind may or may not be in the queue: enqueue it again
    under the same task id, and an id conflict means that it was.
    """

    def __init__(self, outcomes: Sequence[object]) -> None:
        self.outcomes = tuple(outcomes)
        failed = sum(isinstance(outcome, Exception) for outcome in self.outcomes)
        super().__init__(f"批量入队部分失败：{failed}/{len(self.outcomes)} 个任务结果未知")


class Client:
    """A client enqueues tasks.

    It never sends a script twice: after a connection error a task may or may not be queued. Give it a task
    id and enqueue it again; the id conflict then says that it was. ``clock`` gives unix seconds.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._redis = redis
        self._max_payload_bytes = max_payload_bytes
        self._clock = clock
        self._registered: dict[str, float] = {}

    async def enqueue(self, task: Task, options: EnqueueOptions | None = None) -> TaskInfo:
        """Enqueue one task.

        Raises:
            InvalidTaskError: the task breaks a rule; PayloadTooLargeError is one of them.
            TaskIdConflictError: a task of this id exists.
            DuplicateTaskError: the unique lock is held.
            redis.exceptions.RedisError: Redis failed; the task may be queued nevertheless.

        """
        options = options if options is not None else _NO_OPTIONS
        self._check(task, options)
        now = self._clock()
        prepared = compose(task, options, now)
        message = prepared.message
        if self._registration_due(message.queue):
            await self._register([message.queue])
        status = _STATUSES[await self._send_one(prepared, now)]
        if status is EnqueueStatus.ID_CONFLICT:
            raise TaskIdConflictError(message.id, message.queue)
        if status is EnqueueStatus.DUPLICATE:
            raise DuplicateTaskError(message.type, message.queue)
        return TaskInfo(
            id=message.id,
            queue=message.queue,
            type=message.type,
            state=prepared.state,
            process_at=datetime.fromtimestamp(prepared.score or now, UTC),
        )

    async def enqueue_many(self, items: Sequence[tuple[Task, EnqueueOptions]]) -> list[EnqueueResult]:
        """Enqueue many tasks, some hundred a script, in few round trips; results in the order of ``items``.

        Every task is checked before any is sent. A conflict or duplicate is a result, not an error.

        Raises:
            InvalidTaskError: some task breaks a rule; nothing was sent.
            BulkEnqueueError: Redis failed for some; ``outcomes`` holds each result or exception.

        """
        by_queue: dict[str, list[int]] = {}
        for index, (task, options) in enumerate(items):
            self._check(task, options)
            by_queue.setdefault(options.queue, []).append(index)
        await self._register(list(by_queue))
        chunks: list[list[int]] = []
        for indexes in by_queue.values():
            chunks += [indexes[start : start + _CHUNK] for start in range(0, len(indexes), _CHUNK)]
        return await self._send(items, chunks)

    async def _send_one(self, task: PreparedTask, now: float) -> int:
        if task.plain:
            message = task.message
            keys = queue_keys(message.queue)
            args: list[ScriptArg] = [message.id, encode(message), int(now * 1e9)]
            return int(await _PLAIN.run(self._redis, [keys.task(message.id), keys.pending], args))
        (code,) = await _ENQUEUE.run(self._redis, *script_call(task.message.queue, [task], now))
        return int(code)

    async def _send(
        self, items: Sequence[tuple[Task, EnqueueOptions]], chunks: Sequence[list[int]]
    ) -> list[EnqueueResult]:
        prepared: dict[int, PreparedTask] = {}

        def make_calls() -> Iterator[ScriptCall]:
            now = self._clock()
            for chunk in chunks:
                batch = [compose(*items[index], now) for index in chunk]
                prepared.update(zip(chunk, batch, strict=True))
                yield script_call(batch[0].message.queue, batch, now)

        results: dict[int, EnqueueResult | Exception] = {}
        replies = await _ENQUEUE.run_many(self._redis, make_calls())
        for chunk, reply in zip(chunks, replies, strict=True):
            if isinstance(reply, Exception):
                results.update(dict.fromkeys(chunk, reply))
                continue
            for index, code in zip(chunk, reply, strict=True):
                results[index] = _result(prepared[index], code)
        in_order = [results[index] for index in range(len(items))]
        known = [result for result in in_order if not isinstance(result, Exception)]
        if len(known) < len(in_order):
            raise BulkEnqueueError(in_order)
        return known

    def _check(self, task: Task, options: EnqueueOptions) -> None:
        if len(task.payload) > self._max_payload_bytes:
            raise PayloadTooLargeError(len(task.payload), self._max_payload_bytes)
        check(task, options)

    async def _register(self, queues: Sequence[str]) -> None:
        """Enter the queues in the registry, again after a minute: a flushed Redis must heal."""
        due = [queue for queue in queues if self._registration_due(queue)]
        if due:
            await register_queues(self._redis, due)
            self._registered.update(dict.fromkeys(due, time.monotonic()))

    def _registration_due(self, queue: str) -> bool:
        return time.monotonic() - self._registered.get(queue, float("-inf")) >= _REGISTER_EVERY_S


def script_call(queue: str, tasks: Sequence[PreparedTask], now: float) -> tuple[list[str], list[ScriptArg]]:
    """Return KEYS and ARGV of ``enqueue.lua`` for tasks of one queue."""
    queue_names = queue_keys(queue)
    prefix = queue_names.task_prefix
    keys: list[str] = [queue_names.groups, queue_names.pending]
    args: list[ScriptArg] = [int(now * 1e9)]
    for task in tasks:
        if task.plain:
            task_id = task.message.id
            keys.append(prefix + task_id)
            args += (task_id, encode(task.message), "")
        else:
            keys += task_keys(task)
            args += task_args(task)
    return keys, args


def task_keys(task: PreparedTask) -> tuple[str, str, str]:
    """Return hash, unique lock (the hash again = none) and target, as ``_enqueue.lua`` takes them."""
    key = queue_keys(task.message.queue).task(task.message.id)
    return key, task.message.unique_key or key, task.target


def task_args(task: PreparedTask) -> tuple[ScriptArg, ...]:
    """Return id, message, state, score, lock time and group of a task, as ``_enqueue.lua`` takes them."""
    message = task.message
    return message.id, encode(message), task.state, task.score, task.unique_ttl_s, message.group_key


def _result(task: PreparedTask, code: int) -> EnqueueResult:
    message = task.message
    state = task.state if code == 1 else None
    return EnqueueResult(_STATUSES[code], message.id, message.queue, state)
