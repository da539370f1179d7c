"""The deliveries a server holds: handlers that run and outcomes that wait to be written."""

import asyncio
from enum import StrEnum

from junhong_cmp.asynq.broker_types import LeasedTask
from junhong_cmp.asynq.cancel_requests import CancelPolicy
from junhong_cmp.asynq.processing_task import ProcessingTask


class CancelCause(StrEnum):
    """Why the server cancelled a handler."""

    TIMEOUT = "超过任务时限"
    REQUESTED = "收到取消指令"
    LEASE_LOST = "租约已失去"
    SHUTDOWN = "服务器停止"


class InFlight:
    """One delivery from dequeue until its outcome is in Redis.

    Written by the event loop; the heartbeat thread reads it and moves only
    ``lease_good_until`` (monotonic seconds, as ``started_at`` and ``deadline_at``).
    ``started_s`` is unix seconds.
    """

    __slots__ = (
        "cancel_policy",
        "cancelled_at",
        "cause",
        "deadline_at",
        "entered",
        "lease_good_until",
        "leased",
        "reported",
        "runner",
        "started_at",
        "started_s",
        "task",
    )

    def __init__(
        self,
        leased: LeasedTask,
        task: ProcessingTask,
        *,
        started_s: float,
        started_at: float,
        deadline_at: float,
        lease_good_until: float,
    ) -> None:
        self.leased = leased
        self.task = task
        self.started_s = started_s
        self.started_at = started_at
        self.deadline_at = deadline_at
        self.lease_good_until = lease_good_until
        self.runner: asyncio.Task[None] | None = None
        self.entered = False
        self.cause: CancelCause | None = None
        self.cancel_policy: CancelPolicy | None = None
        self.cancelled_at = 0.0
        self.reported = False

    def cancel(self, cause: CancelCause, now: float) -> None:
        """Cancel the handler once; a later cause changes nothing, except that a lost lease always counts."""
        if self.cause is None:
            self.cause = cause
            self.cancelled_at = now
            if self.entered and self.runner is not None:  # else it sees the cause and skips the handler
                self.runner.cancel()
        elif cause is CancelCause.LEASE_LOST:
            self.cause = cause

    def cancel_again(self) -> None:
        """Repeat the cancellation for the same cause."""
        if self.entered and self.runner is not None:
            self.runner.cancel()


class InFlightTable:
    """An in-flight table knows every delivery the server holds.

    The two sets are changed by the event loop only; a snapshot by ``list(...)``
    is one C call, so the heartbeat thread may take it without a lock.
    """

    def __init__(self) -> None:
        self.running: set[InFlight] = set()
        self.settling: set[InFlight] = set()

    def snapshot(self) -> list[InFlight]:
        """Return what is held now, for any thread."""
        return [*list(self.running), *list(self.settling)]

    def running_types(self) -> list[str]:
        """Return the types of the tasks being handled now, sorted, each once."""
        return sorted({item.task.type for item in list(self.running)})
