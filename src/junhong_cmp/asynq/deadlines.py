"""Handlers whose time is up, and handlers that do not end when told to."""

import asyncio
import time
from datetime import timedelta

import structlog

from junhong_cmp.asynq.in_flight import CancelCause, InFlight, InFlightTable
from junhong_cmp.asynq.observer import SafeObserver

log = structlog.stdlib.get_logger(__name__)


class DeadlineSweep:
    """A deadline sweep cancels handlers at their deadlines with one timer for all of them.

    The timer stands at the earliest deadline it was told of. When it fires, the
    running handlers are looked through and the timer moves to the next earliest;
    short tasks that ended meanwhile cost nothing but a comparison.
    """

    def __init__(
        self, table: InFlightTable, cancel_grace: timedelta, observer: SafeObserver | None = None
    ) -> None:
        self._table = table
        self._observer = observer
        self._cancel_grace = cancel_grace.total_seconds()
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = float("inf")

    def watch(self, deadline_at: float) -> None:
        """Make sure that a sweep happens at ``deadline_at`` (monotonic seconds)."""
        if deadline_at < self._due_at:
            self._arm(deadline_at)

    def cancel(self, item: InFlight, cause: CancelCause) -> None:
        """Cancel one handler and watch that it ends."""
        now = time.monotonic()
        item.cancel(cause, now)
        self.watch(now + self._cancel_grace)

    def close(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due_at = None, float("-inf")

    def report_abandoned(self, item: InFlight, now: float) -> None:
        """Warn once that a cancelled handler still runs; it keeps its slot, and its lease, until it ends."""
        if item.reported:
            return
        item.reported = True
        log.warning(
            "任务取消后仍未结束",
            task_type=item.task.type,
            task_id=item.task.id,
            queue=item.task.queue,
            cause=str(item.cause),
            since_cancel_s=round(now - item.cancelled_at, 3),
        )
        if self._observer is not None:
            self._observer.handler_abandoned(item.task)

    def _arm(self, due_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_at = due_at
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due_at - time.monotonic()), self._sweep)

    def _sweep(self) -> None:
        now = time.monotonic()
        self._timer, self._due_at = None, float("inf")
        next_due = float("inf")
        for item in list(self._table.running):
            if item.cause is None and item.deadline_at <= now:
                item.cancel(CancelCause.TIMEOUT, now)
            if item.cause is None:
                next_due = min(next_due, item.deadline_at)
            elif item.cancelled_at + self._cancel_grace > now:
                next_due = min(next_due, item.cancelled_at + self._cancel_grace)
            elif not item.reported:
                self.report_abandoned(item, now)
                item.cancel_again()  # the first may have been lost: wait_for before Python 3.12 does that
        if next_due < float("inf"):
            self._arm(next_due)
