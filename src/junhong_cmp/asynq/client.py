"""The client puts tasks into queues (client.go, internal/rdb: Enqueue, Schedule, AddToGroup)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from junhong_cmp.asynq.broker_presence import register_queues
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.enqueue_calls import BulkCall, BulkRequest, task_args, task_keys
from junhong_cmp.asynq.errors import (
    AsynqError,
    DuplicateTaskError,
    PayloadTooLargeError,
    TaskIdConflictError,
)
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import PreparedTask, check, compose
from junhong_cmp.asynq.plain_form import PlainForm, PlainForms
from junhong_cmp.asynq.scripting import LuaScript, ScriptCall
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, EnqueueResult, EnqueueStatus, Task, TaskInfo
from junhong_cmp.asynq.task_ids import new_id

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
        self._forms = PlainForms(max_payload_bytes)

    async def enqueue(self, task: Task, options: EnqueueOptions | None = None) -> TaskInfo:
        """Enqueue one task.

        Raises:
            InvalidTaskError: the task breaks a rule; PayloadTooLargeError is one of them.
            TaskIdConflictError: a task of this id exists.
            DuplicateTaskError: the unique lock is held.
            redis.exceptions.RedisError: Redis failed; the task may be queued nevertheless.

        """
        options = options if options is not None else _NO_OPTIONS
        form = self._forms.find(task, options)
        if form is None:
            self._check(task, options)
        if self._registration_due(options.queue):
            await self._register([options.queue])
        now = self._clock()
        if form is not None:
            return await self._enqueue_plain(task, options, form, now)
        return await self._enqueue_any(compose(task, options, now), now)

    async def enqueue_many(self, items: Sequence[tuple[Task, EnqueueOptions]]) -> list[EnqueueResult]:
        """Enqueue many tasks, some hundred a script, in few round trips; results in the order of ``items``.

        Every task is checked before any is sent. A conflict or duplicate is a result, not an error.

        Raises:
            InvalidTaskError: some task breaks a rule; nothing was sent.
            BulkEnqueueError: Redis failed for some; ``outcomes`` holds each result or exception.

        """
        by_queue: dict[str, BulkRequest] = {}
        for index, (task, options) in enumerate(items):
            form = self._forms.find(task, options)
            if form is None:
                self._check(task, options)
            request = by_queue.get(options.queue)
            if request is None:
                request = by_queue[options.queue] = BulkRequest(options.queue)
            request.add(index, task, options, form)
        await self._register(list(by_queue))
        return await self._send(list(by_queue.values()), len(items))

    async def _enqueue_plain(
        self, task: Task, options: EnqueueOptions, form: PlainForm, now: float
    ) -> TaskInfo:
        task_id = options.task_id if options.task_id is not None else new_id()
        keys = queue_keys(options.queue)
        args = (task_id, form.encode(task.payload, task_id.encode()), int(now * 1e9))
        if await _PLAIN.run_awake(self._redis, (keys.task(task_id), keys.pending), args) == 0:
            raise TaskIdConflictError(task_id, options.queue)
        at = datetime.fromtimestamp(now, UTC)
        return TaskInfo(task_id, options.queue, task.type, TaskState.PENDING, at)

    async def _enqueue_any(self, task: PreparedTask, now: float) -> TaskInfo:
        message = task.message
        names = queue_keys(message.queue)
        places = [names.groups, names.pending, *task_keys(task)]
        (code,) = await _ENQUEUE.run(self._redis, places, [int(now * 1e9), *task_args(task)])
        status = _STATUSES[int(code)]
        if status is EnqueueStatus.ID_CONFLICT:
            raise TaskIdConflictError(message.id, message.queue)
        if status is EnqueueStatus.DUPLICATE:
            raise DuplicateTaskError(message.type, message.queue)
        at = datetime.fromtimestamp(task.score or now, UTC)
        return TaskInfo(message.id, message.queue, message.type, task.state, at)

    async def _send(self, requests: Sequence[BulkRequest], count: int) -> list[EnqueueResult]:
        calls: list[BulkCall] = []

        def make_calls() -> Iterator[ScriptCall]:
            now = self._clock()
            for request in requests:
                for call in request.calls(_CHUNK, now):
                    calls.append(call)
                    yield call.keys, call.args

        outcomes: list[EnqueueResult | Exception | None] = [None] * count
        replies = await _ENQUEUE.run_many(self._redis, make_calls())
        for call, reply in zip(calls, replies, strict=True):
            if isinstance(reply, Exception):
                for index, _, _ in call.tasks:
                    outcomes[index] = reply
                continue
            for (index, task_id, state), code in zip(call.tasks, reply, strict=True):
                given = state if code == 1 else None
                outcomes[index] = EnqueueResult(_STATUSES[code], task_id, call.queue, given)
        known = [outcome for outcome in outcomes if isinstance(outcome, EnqueueResult)]
        if len(known) < count:
            raise BulkEnqueueError(outcomes)
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
