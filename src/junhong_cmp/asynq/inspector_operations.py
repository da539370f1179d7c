"""What an operator does to tasks: run, archive, delete, one or many (inspector.go, rdb/inspect.go)."""

import hashlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

import structlog

from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.errors import DuplicateTaskError
from junhong_cmp.asynq.inspector_errors import TaskNotFoundError, TaskStateError, UnsupportedStateError
from junhong_cmp.asynq.inspector_places import place_args, place_keys
from junhong_cmp.asynq.inspector_types import BulkReport
from junhong_cmp.asynq.keys import QueueKeys, queue_keys
from junhong_cmp.asynq.message import decode, encode
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg
from junhong_cmp.asynq.states import TaskState

log = structlog.stdlib.get_logger(__name__)

_SHARED: Final = ("_places", "_message", "_lock", "_forget", "_trim", "_operations")
_ONE: Final = LuaScript.load("junhong_cmp.asynq", *_SHARED, "operate_task")
_ALL: Final = LuaScript.load("junhong_cmp.asynq", *_SHARED, "operate_all")
_UPDATE: Final = LuaScript.load("junhong_cmp.asynq", "update_payload")
_AT_ONCE: Final = 100
_UPDATE_ATTEMPTS: Final = 5


class Operation(StrEnum):
    """What becomes of a task."""

    RUN = "run"
    ARCHIVE = "archive"
    DELETE = "delete"


_NAMES: Final = {Operation.RUN: "批量立即执行", Operation.ARCHIVE: "批量归档", Operation.DELETE: "批量删除"}
_ALREADY: Final = {
    Operation.RUN: ("已在待处理中", TaskState.PENDING),
    Operation.ARCHIVE: ("已归档", TaskState.ARCHIVED),
}
_STATES: Final[Mapping[Operation, frozenset[TaskState]]] = {
    Operation.RUN: frozenset(
        {TaskState.SCHEDULED, TaskState.RETRY, TaskState.ARCHIVED, TaskState.AGGREGATING}
    ),
    Operation.ARCHIVE: frozenset(
        {TaskState.PENDING, TaskState.SCHEDULED, TaskState.RETRY, TaskState.AGGREGATING}
    ),
    Operation.DELETE: frozenset(set(TaskState) - {TaskState.ACTIVE}),
}


class TaskOperator:
    """A task operator moves and deletes tasks; never one that a worker has in its hands."""

    def __init__(self, redis: RedisClient, archive: ArchiveLimits, clock: Callable[[], float]) -> None:
        self._redis = redis
        self._archive = archive
        self._clock = clock

    async def one(self, operation: Operation, queue: str, task_id: str) -> None:
        """Do it to one task.

        Raises:
            TaskNotFoundError: there is none of this id.
            TaskStateError: it is in work, or already where the operation would put it.

        """
        keys = queue_keys(queue)
        code, trimmed = await _ONE.run(self._redis, place_keys(keys), [*self._args(keys, operation), task_id])
        self._tell_trimmed(queue, trimmed)
        if code == 0:
            raise TaskNotFoundError(queue, task_id)
        if code == -1:
            raise TaskStateError(queue, task_id, "正在处理中，不能执行此操作", TaskState.ACTIVE)
        if code == -2:  # noqa: PLR2004 - the script's code for "already there"
            reason, state = _ALREADY[operation]
            raise TaskStateError(queue, task_id, reason, state)

    async def all(self, operation: Operation, queue: str, state: TaskState, *, group: str = "") -> BulkReport:
        """Do it to all tasks of a state, a hundred a script; those that arrive meanwhile may stay.

        Raises:
            UnsupportedStateError: the operation is not for this state.

        """
        if state not in _STATES[operation]:
            raise UnsupportedStateError(_NAMES[operation], state)
        keys = queue_keys(queue)
        ahead = await self._count(keys, state, group)
        total = BulkReport()
        while ahead > 0:
            count = min(ahead, _AT_ONCE)
            args = [*self._args(keys, operation), state.value, group, total.left, count]
            step = BulkReport(*await _ALL.run(self._redis, place_keys(keys), args))
            total = BulkReport(*(sum(pair) for pair in zip(total, step, strict=True)))
            ahead -= count
            if step.done + step.ghosts + step.left < count:
                break
        self._tell_trimmed(queue, total.trimmed)
        return total

    async def update_payload(self, queue: str, task_id: str, payload: bytes) -> None:
        """Give a scheduled task another payload; see :meth:`Inspector.update_task_payload`."""
        for _ in range(_UPDATE_ATTEMPTS):
            if await self._try_update(queue, task_id, payload):
                return
        raise TaskStateError(queue, task_id, "一直在变化，载荷未更新")

    async def _try_update(self, queue: str, task_id: str, payload: bytes) -> bool:
        """Return False if the message has changed since it was read."""
        keys = queue_keys(queue)
        task_key = keys.task(task_id)
        raw = await self._redis.execute_command("HGET", task_key, "msg")
        if raw is None:
            raise TaskNotFoundError(queue, task_id)
        message = decode(raw, task_id=task_id, queue=queue)
        lock = message.unique_key if message.unique_key.startswith(keys.prefix) else task_key
        new_lock = lock
        if lock == keys.unique(message.type, message.payload):
            # Only a lock made from the payload follows it; one of the producer's own making stays.
            new_lock = message.unique_key = keys.unique(message.type, payload)
        message.payload = payload
        digest = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
        script_keys = [task_key, keys.scheduled, lock, new_lock]
        code = await _UPDATE.run(self._redis, script_keys, [task_id, digest, encode(message)])
        match code:
            case 0:
                raise TaskNotFoundError(queue, task_id)
            case -1:
                raise TaskStateError(queue, task_id, "不在定时状态，不能更新载荷")
            case -3:
                raise DuplicateTaskError(message.type, queue)
        return bool(code == 1)

    def _args(self, keys: QueueKeys, operation: Operation) -> list[ScriptArg]:
        now = self._clock()
        archived_until = int(now - self._archive.age.total_seconds())
        return [*place_args(keys, now), operation.value, archived_until, self._archive.size]

    async def _count(self, keys: QueueKeys, state: TaskState, group: str) -> int:
        if state is TaskState.PENDING:
            return int(await self._redis.execute_command("LLEN", keys.pending))
        key = keys.group(group) if state is TaskState.AGGREGATING else str(getattr(keys, state.value))
        return int(await self._redis.execute_command("ZCARD", key))

    @staticmethod
    def _tell_trimmed(queue: str, trimmed: int) -> None:
        if trimmed:
            log.warning("归档超出上限，最旧的任务已删除", queue=queue, trimmed=trimmed)
