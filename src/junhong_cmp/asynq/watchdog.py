"""Noticing that a handler blocks the event loop."""

import asyncio
import sys
import threading
import time
import traceback
from datetime import timedelta
from types import FrameType

import structlog

from junhong_cmp.asynq.in_flight import InFlightTable

log = structlog.stdlib.get_logger(__name__)

_SHOWN_FRAMES = 5
_LOOKS = 5


class Watchdog:
    """A watchdog thread looks whether the event loop still turns, and names the task that holds it up."""

    def __init__(self, table: InFlightTable, blocked_after: timedelta) -> None:
        self._table = table
        self._blocked_after_s = blocked_after.total_seconds()
        self._period_s = self._blocked_after_s / 4
        self._loop = asyncio.get_running_loop()
        self._loop_thread_id = threading.get_ident()
        self._turned_at = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to watch the running event loop."""
        self._turn()
        threading.Thread(target=self._watch, name="asynq-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more; the thread ends by itself."""
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _turn(self) -> None:
        self._turned_at = time.monotonic()
        self._timer = self._loop.call_later(self._period_s, self._turn)

    def _watch(self) -> None:
        reported_at = 0.0
        watched_at = time.monotonic()
        while not self._stopped.wait(self._period_s):
            now, turned_at = time.monotonic(), self._turned_at
            frozen = now - watched_at > self._blocked_after_s  # the process as a whole stood still
            watched_at = now
            if frozen or now - turned_at <= self._blocked_after_s or turned_at == reported_at:
                continue
            reported_at = turned_at
            self._report(now - turned_at)

    def _report(self, blocked_s: float) -> None:
        runner, frame = self._look()
        blocking = [item.task.type for item in list(self._table.running) if item.runner is runner]
        log.error(
            "事件循环阻塞",
            blocked_s=round(blocked_s, 1),
            blocking_type=blocking[0] if runner is not None and blocking else "",
            running_types=self._table.running_types(),
            stack="".join(traceback.format_stack(frame)[-_SHOWN_FRAMES:]) if frame is not None else "",
        )

    def _look(self) -> tuple[asyncio.Task[object] | None, FrameType | None]:
        """Return the task that runs and where it is; the loop's thread may go on between two looks."""
        runner, frame = None, None
        for _ in range(_LOOKS):
            runner = asyncio.current_task(self._loop)
            frame = sys._current_frames().get(self._loop_thread_id)  # noqa: SLF001 - no other way to see a thread
            if asyncio.current_task(self._loop) is runner:
                break
        return runner, frame
