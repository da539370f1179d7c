"""Task messages: built from a task and its options, encoded, decoded, checked (internal/base, client.go)."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.message import DecodeError

from junhong_cmp.asynq.asynq_pb2 import TaskMessage
from junhong_cmp.asynq.errors import AsynqError, InvalidTaskError
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.asynq.task_ids import new_id

DEFAULT_TIMEOUT: Final = timedelta(minutes=30)
_DEFAULT_TIMEOUT_S: Final = int(DEFAULT_TIMEOUT.total_seconds())
_NO_TIME: Final = timedelta(0)
_LONGEST: Final = timedelta(days=365_000)
_EARLIEST_DEADLINE: Final = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""What the protocol and the tools can hold: 0 stands for "no deadline", and rounding up must stay a date."""
_MAX_INT32: Final = 2**31 - 1


class InvalidMessageError(AsynqError):
    """A stored message cannot be decoded or contradicts where it was found."""


@dataclass(slots=True)  # not frozen: that costs more than all the rest of making one
class PreparedTask:
    """A task ready for the wire: its message, first state, score there and lock time.

    ``score`` is unix seconds (0 when pending), ``unique_ttl_s`` 0 without a lock.
    """

    message: TaskMessage
    state: TaskState
    score: int
    unique_ttl_s: int

    @property
    def plain(self) -> bool:
        """Whether nothing but its id has to be checked before it is pending."""
        return self.state is TaskState.PENDING and not self.unique_ttl_s and not self.message.group_key

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
    return compose(task, options, now)


def compose(task: Task, options: EnqueueOptions, now: float) -> PreparedTask:
    """Build the message of a task that :func:`check` has passed."""
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
    """Raise :class:`InvalidTaskError` if a rule of the protocol is broken (client.go: composeOptions).

    What passes can be composed and encoded: of many tasks, all are checked before the first is sent.
    """
    if not task.type.strip():
        raise InvalidTaskError("任务类型不能为空")
    if not options.queue.strip():
        raise InvalidTaskError("队列名不能为空")
    if options.task_id is not None and not options.task_id.strip():
        raise InvalidTaskError("任务编号不能为空")
    if options.group is not None and not options.group.strip():
        raise InvalidTaskError("分组名不能为空")
    if options.max_retry > _MAX_INT32:
        raise InvalidTaskError("重试次数超出范围")
    _check_times(options)
    _check_encodable(task, options)


def encode(message: TaskMessage) -> bytes:
    """Return the bytes of the ``msg`` hash field; equal messages give equal bytes."""
    if message.headers:
        return message.SerializeToString(deterministic=True)
    return message.SerializeToString()  # only maps have no order of their own


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
    if (
        message.timeout < 0
        or message.deadline < 0
        or message.retry < 0
        or message.retried < 0
        or message.retention < 0
    ):
        raise InvalidMessageError("消息中的时限、次数或保留时长为负")
    return message


def ceil_seconds(duration: timedelta) -> int:
    """Return whole seconds, rounded up: a shorter limit than asked for would be a broken promise."""
    return -(-duration // timedelta(seconds=1))


def _check_times(options: EnqueueOptions) -> None:
    if options.unique_for is not None and options.unique_for < timedelta(seconds=1):
        raise InvalidTaskError("唯一锁的时长不能小于 1 秒")
    if options.process_at is not None and options.process_in is not None:
        raise InvalidTaskError("执行时刻与执行延迟只能给一个")
    if options.process_at is not None and options.process_at.tzinfo is None:
        raise InvalidTaskError("执行时刻必须带时区")
    if options.deadline is not None and options.deadline.tzinfo is None:
        raise InvalidTaskError("截止时刻必须带时区")
    if options.timeout is not None and options.timeout < _NO_TIME:
        raise InvalidTaskError("超时不能为负")
    if options.retention is not None and options.retention < _NO_TIME:
        raise InvalidTaskError("保留时长不能为负")
    _check_reach(options)


def _check_reach(options: EnqueueOptions) -> None:
    for length in (options.unique_for, options.timeout, options.retention, options.process_in):
        if length is not None and length > _LONGEST:
            raise InvalidTaskError("时长超出范围：最长 1000 年")
    if options.process_at is not None and options.process_at > _LATEST:
        raise InvalidTaskError("执行时刻超出范围：最晚为公元 9999 年末")
    if options.deadline is not None and options.deadline < _EARLIEST_DEADLINE:
        raise InvalidTaskError("截止时刻超出范围：必须晚于 1970 年初")


def _check_encodable(task: Task, options: EnqueueOptions) -> None:
    texts = [task.type, options.queue]
    texts += [text for text in (options.task_id, options.group) if text is not None]
    if task.headers:
        texts += [*task.headers, *task.headers.values()]
    try:
        for text in texts:
            if not text.isascii():
                text.encode()
    except (UnicodeEncodeError, AttributeError):  # a lone surrogate, a header that is no text
        raise _unencodable() from None
    if not isinstance(task.payload, bytes):
        raise _unencodable()


def _unencodable() -> InvalidTaskError:
    return InvalidTaskError("任务含有无法编码的文字、数值或类型")


def _message(task: Task, options: EnqueueOptions) -> TaskMessage:
    timeout_s, deadline_s = _limits(options)
    try:
        message = TaskMessage(
            type=task.type,
            payload=task.payload,
            id=options.task_id if options.task_id is not None else new_id(),
            queue=options.queue,
            retry=max(0, options.max_retry),
            timeout=timeout_s,
        )
        if deadline_s:
            message.deadline = deadline_s
        if options.unique_for is not None:
            message.unique_key = queue_keys(options.queue).unique(task.type, task.payload)
        if options.retention is not None:
            message.retention = ceil_seconds(options.retention)
        if options.group is not None:
            message.group_key = options.group
        if task.headers:
            message.headers.update(task.headers)
    except (ValueError, TypeError):  # a number out of range, a type that nobody should have passed
        raise _unencodable() from None
    return message


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
        timeout_s = _DEFAULT_TIMEOUT_S
    return timeout_s, deadline_s
