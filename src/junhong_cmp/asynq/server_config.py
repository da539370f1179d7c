"""What a server can be told, with Asynq's own defaults."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from junhong_cmp.asynq.aggregation import Aggregation
from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.cancel_requests import CancelPolicy
from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.observer import ServerObserver
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.retry import RetryDelay, default_retry_delay, every_error_is_failure

ErrorHandler = Callable[[ProcessingTask, BaseException], None]


class ServerConfigError(AsynqError):
    """A server cannot run with this configuration; the text names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How often a server's background duties act, and how long it waits for them.

    ``lease`` and ``recovery_margin`` are part of the protocol: a task whose lease
    ended longer than the margin ago may be taken over by any worker of the queue,
    Go's included. Shorten them only when every worker of the queue is yours.
    """

    heartbeat: timedelta = timedelta(seconds=5)
    lease: timedelta = timedelta(seconds=30)
    recovery_margin: timedelta = timedelta(seconds=30)
    recover: timedelta = timedelta(seconds=60)
    forward: timedelta = timedelta(seconds=5)
    janitor: timedelta = timedelta(seconds=8)
    blocking_wait: timedelta = timedelta(seconds=5)
    """How long one wake-up command may block; it bounds the pick-up delay should a wake-up be lost."""
    unwatched_check: timedelta = timedelta(seconds=1)
    """How often queues are looked at that the blocking client has no connection to wait with."""
    paused_check: timedelta = timedelta(seconds=2)
    """How soon a queue that was resumed is noticed."""
    backoff_cap: timedelta = timedelta(seconds=5)
    """The longest wait between two attempts to reach Redis."""
    ack_deadline: timedelta = timedelta(minutes=10)
    """How long the result of a finished task is kept and sent again while Redis does not take it."""
    loop_blocked_after: timedelta = timedelta(seconds=2)
    """A blockage of the event loop longer than this is reported with the task that causes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonPolicy:
    """When a task counts as poison: its worker vanished ``recoveries`` times within ``window``.

    Such a task is archived, whatever retries it has left: it most likely kills its workers.
    """

    recoveries: int = 3
    window: timedelta = timedelta(hours=72)

    def __post_init__(self) -> None:
        if self.recoveries < 1 or self.window <= timedelta(0):
            raise ServerConfigError("poison 的次数与时间窗必须为正")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """How a server fetches, retries and stops.

    ``queues`` maps a queue's name to its priority. With ``strict_priority`` a
    queue is served only while all queues of higher priority are empty; otherwise
    free slots are shared out by weight.
    """

    concurrency: int = field(default_factory=lambda: os.cpu_count() or 1)
    queues: Mapping[str, int] = field(default_factory=lambda: {"default": 1})
    strict_priority: bool = False
    queue_limits: Mapping[str, int] = field(default_factory=dict)
    """Most handlers of a queue that run at once in this process."""
    type_limits: Mapping[str, int] = field(default_factory=dict)
    """Most handlers of a task type, or of all types with a prefix, that run at once in this process."""
    shutdown_timeout: timedelta = timedelta(seconds=8)
    cancel_grace: timedelta = timedelta(seconds=5)
    """How long a cancelled handler may take to end before it is reported as abandoned."""
    unknown_type_delay: timedelta = timedelta(minutes=1)
    """When a task of a type this worker does not know is offered again."""
    retry_delay: RetryDelay = default_retry_delay
    is_failure: Callable[[BaseException], bool] = every_error_is_failure
    """False keeps the error from counting as a retry, as long as retries are left."""
    error_handler: ErrorHandler | None = None
    """Called with the task and its error before the error is recorded; must not block."""
    aggregation: Aggregation | None = None
    """How tasks with a group become one; without it they wait for a server that knows."""
    cancel_policy: CancelPolicy = CancelPolicy.RETRY
    """What becomes of a task an operator cancelled, unless the request says so itself."""
    observer: ServerObserver | None = None
    """Told of every task that ended, e.g. to count it; must not block."""
    max_tasks: int | None = None
    """After this many deliveries the server drains by itself (``Server.wait_drained``)."""
    poison: PoisonPolicy = PoisonPolicy()
    archive: ArchiveLimits = field(default_factory=lambda: ArchiveLimits(10_000, timedelta(days=90)))
    """Whatever exceeds them is deleted, oldest first, when something is archived."""
    max_message_bytes: int = 1024 * 1024
    """A larger task, payload and headers, is archived unread; a client may allow itself larger ones."""
    intervals: Intervals = Intervals()
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the process says of itself to whoever asks the inspector for servers; short texts."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ServerConfigError(f"concurrency 必须不小于 1，实际为 {self.concurrency}")
        if not self.queues:
            raise ServerConfigError("queues 至少要有一个队列")
        for queue, priority in self.queues.items():
            if not queue.strip() or priority < 1:
                raise ServerConfigError(f"队列名不能为空且权重必须为正整数，实际为 {queue!r}={priority}")
        if self.max_tasks is not None and self.max_tasks < 1:
            raise ServerConfigError(f"max_tasks 必须不小于 1，实际为 {self.max_tasks}")
        if self.shutdown_timeout < timedelta(0):
            raise ServerConfigError("shutdown_timeout 不能为负")
        if self.archive.size < 0 or self.archive.age < timedelta(0) or self.max_message_bytes < 1:
            raise ServerConfigError("archive 的上限不能为负，max_message_bytes 必须为正整数")
        self._check_limits()
        if self.intervals.heartbeat * 2 > self.intervals.lease:
            raise ServerConfigError("heartbeat 间隔必须不大于 lease 的一半，否则一次失败的续租就会丢失任务")

    def _check_limits(self) -> None:
        for name, limit in {**self.type_limits, **self.queue_limits}.items():
            if not name.strip() or limit < 1:
                raise ServerConfigError(f"并发上限必须为正整数且名称不能为空，实际为 {name!r}={limit}")
        if unknown := set(self.queue_limits) - set(self.queues):
            raise ServerConfigError(f"queue_limits 含有未配置的队列：{'、'.join(sorted(unknown))}")
