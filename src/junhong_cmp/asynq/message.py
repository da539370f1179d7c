"""Task messages: built from a task and its options, encoded, decoded, checked (internal/base, client.go)."""

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from google.protobuf.message import DecodeError

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.errors import AsynqError, InvalidTaskError
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task

DEFAULT_TIMEOUT: Final = timedelta(minutes=30)
_MAX_INT32: Final = 2**31 - 1


class InvalidMessageError(AsynqError):
    """A stored message cannot be decoded or contradicts where it was found."""


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """A task ready for the wire: its message, first state, score there and lock time.

    ``score`` is unix seconds (0 when pending), ``unique_ttl_s`` 0 without a lock.
    """

    message: TaskMessage
    state: TaskState
    score: int
    unique_ttl_s: int

    @property
    def target(self) -> str:
        """The key of the list or sorted set the id goes to."""
        keys = queue_keys(self.message.queue)
        if self.state is TaskState.AGGREGATING:
            return keys.group(self.message.group_key)
        return keys.scheduled if self.state is TaskState.SCHEDULED else keys.pending


def prepare(task: Task, options: EnqueueOptions, now: float) -> PreparedTask:
    """Check a task and build its message (client.go: composeOptions, EnqueueContext).

    Raises:
        InvalidTaskError: a rule of the protocol is broken; the text names it.

    """
    check(task, options)
    process_at = _process_at(options, now)
    unique_ttl_s = ceil_seconds(options.unique_for) if options.unique_for is not None else 0
    message = _message(task, options)
    if process_at is not None:
        # The lock of a scheduled task starts to run out when the task becomes due (client.go: schedule).
        ttl = process_at - math.floor(now) + unique_ttl_s if unique_ttl_s else 0
        return PreparedTask(message, TaskState.SCHEDULED, process_at, ttl)
    if options.group:
        return PreparedTask(message, TaskState.AGGREGATING, int(now), unique_ttl_s)
    return PreparedTask(message, TaskState.PENDING, 0, unique_ttl_s)


def check(task: Task, options: EnqueueOptions) -> None:
    """Raise :class:`InvalidTaskError` if a rule of the protocol is broken (client.go: composeOptions)."""
    named: Mapping[str, str | None] = {
        "任务类型": task.type,
        "队列名": options.queue,
        "任务编号": options.task_id,
        "分组名": options.group,
    }
    for name, value in named.items():
        if value is not None and not value.strip():
            raise InvalidTaskError(f"{name}不能为空")
    if options.unique_for is not None and options.unique_for < timedelta(seconds=1):
        raise InvalidTaskError("唯一锁的时长不能小于 1 秒")
    if options.process_at is not None and options.process_in is not None:
        raise InvalidTaskError("执行时刻与执行延迟只能给一个")
    if options.max_retry > _MAX_INT32:
        raise InvalidTaskError("重试次数超出范围")
    for name, instant in (("执行时刻", options.process_at), ("截止时刻", options.deadline)):
        if instant is not None and instant.tzinfo is None:
            raise InvalidTaskError(f"{name}必须带时区")
    for name, duration in (("超时", options.timeout), ("保留时长", options.retention)):
        if duration is not None and duration < timedelta(0):
            raise InvalidTaskError(f"{name}不能为负")


def encode(message: TaskMessage) -> bytes:
    """Return the bytes of the ``msg`` hash field; equal messages give equal bytes."""
    return message.SerializeToString(deterministic=True)


def decode(raw: bytes, *, task_id: str, queue: str) -> TaskMessage:
    """Decode the ``msg`` field of the task ``task_id`` of ``queue``.

    Raises:
        InvalidMessageError: not a message, or one that belongs elsewhere.

    """
    try:
        message = TaskMessage.FromString(raw)
    except DecodeError:
        raise InvalidMessageError("无法解码任务消息") from None
    if message.id != task_id:
        raise InvalidMessageError("消息中的任务编号与键不符")
    if message.queue != queue:
        raise InvalidMessageError("消息中的队列与所在队列不符")
    if not message.type.strip():
        raise InvalidMessageError("消息中的任务类型为空")
    if min(message.timeout, message.deadline, message.retry, message.retried, message.retention) < 0:
        raise InvalidMessageError("消息中的时限、次数或保留时长为负")
    return message


def ceil_seconds(duration: timedelta) -> int:
    """Return whole seconds, rounded up: a shorter limit than asked for would be a broken promise."""
    return -(-duration // timedelta(seconds=1))


def _message(task: Task, options: EnqueueOptions) -> TaskMessage:
    timeout_s, deadline_s = _limits(options)
    unique_key = queue_keys(options.queue).unique(task.type, task.payload) if options.unique_for else ""
    try:
        return TaskMessage(
            type=task.type,
            payload=task.payload,
            id=options.task_id if options.task_id is not None else str(uuid.uuid4()),
            queue=options.queue,
            retry=max(0, options.max_retry),
            timeout=timeout_s,
            deadline=deadline_s,
            unique_key=unique_key,
            retention=ceil_seconds(options.retention) if options.retention is not None else 0,
            group_key=options.group or "",
            headers=dict(task.headers),
        )
    except (ValueError, TypeError):  # a text with lone surrogates, a payload that is no bytes
        raise InvalidTaskError("任务含有无法编码的文字、数值或类型") from None


def _process_at(options: EnqueueOptions, now: float) -> int | None:
    """Return a future instant as unix seconds, rounded up so that no task runs before its time; else None."""
    if options.process_at is not None:
        instant = options.process_at.timestamp()
    elif options.process_in is not None:
        instant = now + options.process_in.total_seconds()
    else:
        return None
    return math.ceil(instant) if instant > now else None


def _limits(options: EnqueueOptions) -> tuple[int, int]:
    """Return timeout in seconds and deadline in unix seconds; 0 = none (client.go: EnqueueContext)."""
    timeout_s = ceil_seconds(options.timeout) if options.timeout is not None else 0
    deadline_s = int(options.deadline.timestamp()) if options.deadline is not None else 0
    if not timeout_s and not deadline_s:
        timeout_s = ceil_seconds(DEFAULT_TIMEOUT)
    return timeout_s, deadline_s
