"""Errors of the task queue, by what a caller does about them.

::

    AsynqError
    ├── RedisUrlError            correct the address (redis_url.py)
    ├── InvalidTaskError         correct the task or its options; nothing was written
    │   └── PayloadTooLargeError     put the data elsewhere, enqueue a reference
    ├── InvalidCronError         correct the schedule (cron.py)
    ├── InvalidMessageError      the stored message cannot be used, it gets quarantined (message.py)
    ├── TaskIdConflictError      a task of this id exists already: treat as done
    ├── DuplicateTaskError       the unique lock is held: treat as done
    ├── BulkEnqueueError         ``outcomes`` says what became of each task (client.py)
    └── raised by handlers
        ├── SkipRetry            archive the task now
        ├── RevokeTask           drop the task, count it as processed
        └── PutBack              run it later, without counting a failure
"""

from datetime import timedelta


class AsynqError(Exception):
    """Root of all errors this package raises on purpose."""


class InvalidTaskError(AsynqError):
    """A task or its options break a rule of the protocol; nothing was written."""


class PayloadTooLargeError(InvalidTaskError):
    """A payload is larger than the client accepts."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(
            f"任务载荷过大：{size_bytes} 字节，上限 {limit_bytes} 字节；请把数据存到别处，载荷只放引用"
        )


class TaskIdConflictError(AsynqError):
    """A task with this id exists already in the queue."""

    def __init__(self, task_id: str, queue: str) -> None:
        self.task_id = task_id
        self.queue = queue
        super().__init__(f"任务编号已存在：队列 {queue}，编号 {task_id}")


class DuplicateTaskError(AsynqError):
    """Another task of the same queue, type and payload holds the unique lock."""

    def __init__(self, task_type: str, queue: str) -> None:
        self.task_type = task_type
        self.queue = queue
        super().__init__(f"相同任务已在队列中：队列 {queue}，类型 {task_type}")


class SkipRetry(AsynqError):  # noqa: N818 - a verdict of the handler, named as in Asynq
    """Raised by a handler: archive the task now, whatever retries are left."""


class RevokeTask(AsynqError):  # noqa: N818 - a verdict of the handler, named as in Asynq
    """Raised by a handler: drop the task without retry or archive; it counts as processed."""


class PutBack(AsynqError):  # noqa: N818 - a verdict of the handler, not a fault
    """Raised by a handler: run the task again after ``delay``; never a failure, never archived."""

    def __init__(self, delay: timedelta, reason: str) -> None:
        self.delay = delay
        self.reason = reason
        super().__init__(reason)
