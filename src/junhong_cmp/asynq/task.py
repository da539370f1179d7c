"""What producers hand in and get back: tasks, options and results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from junhong_cmp.asynq.states import TaskState


@dataclass(frozen=True, slots=True)
class Task:
    """A unit of work: a type that routes it and a payload only its handler understands."""

    type: str
    payload: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """How a task is to be run.

    ``process_at`` (aware) excludes ``process_in``. Fractions of seconds are rounded up, since the protocol
    keeps whole seconds. Without timeout and deadline a task gets Asynq's default timeout of 30 minutes.
    ``unique_for`` holds a lock on queue, type and payload for that long or until the task succeeds.
    """

    queue: str = "default"
    max_retry: int = 25
    timeout: timedelta | None = None
    deadline: datetime | None = None
    unique_for: timedelta | None = None
    task_id: str | None = None
    process_at: datetime | None = None
    process_in: timedelta | None = None
    retention: timedelta | None = None
    group: str | None = None


class TaskInfo(NamedTuple):
    """A task as it was just enqueued; ``process_at`` is aware UTC."""

    id: str
    queue: str
    type: str
    state: TaskState
    process_at: datetime


class EnqueueStatus(StrEnum):
    """What became of an attempt to enqueue."""

    ENQUEUED = "enqueued"
    ID_CONFLICT = "id_conflict"
    DUPLICATE = "duplicate"


class EnqueueResult(NamedTuple):
    """The exact result for one task of a bulk enqueue; ``state`` is None unless it was enqueued."""

    status: EnqueueStatus
    task_id: str
    queue: str
    state: TaskState | None
