"""What a server tells whoever measures it: one call for each task, no dependency on any metrics library."""

import time
from enum import StrEnum
from typing import Protocol

import structlog

from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.asynq.in_flight import InFlight
from junhong_cmp.asynq.mux import UnknownTaskTypeError
from junhong_cmp.asynq.processing_task import ProcessingTask

log = structlog.stdlib.get_logger(__name__)

_TELL_EVERY_S = 60.0


class TaskOutcome(StrEnum):
    """What became of one delivery of a task."""

    SUCCEEDED = "succeeded"
    DROPPED = "dropped"
    """Revoked by its handler, or cancelled for good by an operator."""
    RETRIED = "retried"
    ARCHIVED = "archived"
    PUT_BACK = "put_back"
    """Again later, and no failure; a type this worker does not know is put back too."""
    REQUEUED = "requeued"
    """Back at the head of its queue, as the server stops."""
    LOST = "lost"
    """Its lease was lost: another worker has it."""


class ServerObserver(Protocol):
    """What a server calls, on its event loop, as things happen; no method may block.

    Gauges are read from the server itself (``in_flight``, ``abandoned``).
    """

    def task_ended(self, task: ProcessingTask, outcome: TaskOutcome, duration_s: float) -> None:
        """Note a handler that ended; ``duration_s`` is how long it ran."""
        ...

    def handler_abandoned(self, task: ProcessingTask) -> None:
        """Note a handler that still runs well after it was cancelled."""
        ...

    def task_recovered(self, queue: str, task_type: str, *, poison: bool) -> None:
        """Note a task taken back from a worker that vanished; a ``poison`` one was archived."""
        ...


class SafeObserver:
    """A safe observer passes calls on and survives what they raise: measuring must not disturb the work."""

    def __init__(self, observer: ServerObserver) -> None:
        self._observer = observer
        self._told_at = float("-inf")

    def task_ended(self, item: InFlight, ack: Ack | None, error: BaseException | None) -> None:
        """Pass on how the handler of ``item`` ended."""
        try:
            self._observer.task_ended(item.task, _outcome(ack, error), time.monotonic() - item.started_at)
        except Exception as raised:  # noqa: BLE001 - the caller's own measuring; it is told below
            self._tell(raised)

    def handler_abandoned(self, task: ProcessingTask) -> None:
        """Pass on that a handler was abandoned."""
        try:
            self._observer.handler_abandoned(task)
        except Exception as raised:  # noqa: BLE001 - as above
            self._tell(raised)

    def task_recovered(self, queue: str, task_type: str, *, poison: bool) -> None:
        """Pass on that a task was recovered."""
        try:
            self._observer.task_recovered(queue, task_type, poison=poison)
        except Exception as raised:  # noqa: BLE001 - as above
            self._tell(raised)

    def _tell(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._told_at >= _TELL_EVERY_S:
            self._told_at = now
            log.error("观测回调出错，已忽略", exc_info=error)


def _outcome(ack: Ack | None, error: BaseException | None) -> TaskOutcome:
    if ack is None:
        return TaskOutcome.LOST
    if ack.kind in {AckKind.DONE, AckKind.COMPLETE}:
        return TaskOutcome.SUCCEEDED if error is None else TaskOutcome.DROPPED
    if ack.kind is AckKind.RETRY:
        put_back = isinstance(error, PutBack | UnknownTaskTypeError)
        return TaskOutcome.PUT_BACK if put_back else TaskOutcome.RETRIED
    return TaskOutcome.ARCHIVED if ack.kind is AckKind.ARCHIVE else TaskOutcome.REQUEUED
