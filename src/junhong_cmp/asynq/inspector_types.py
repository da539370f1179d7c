"""What the inspector shows of queues, tasks and processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.states import TaskState


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """The figures of one queue; ``latency`` is how long the oldest pending task has waited."""

    queue: str
    pending: int
    active: int
    scheduled: int
    retry: int
    archived: int
    completed: int
    aggregating: int
    paused: bool
    latency: timedelta
    processed_today: int
    failed_today: int
    processed_total: int
    failed_total: int
    groups: int = 0

    @property
    def size(self) -> int:
        """All tasks that are stored, whatever their state."""
        waiting = self.pending + self.scheduled + self.retry + self.aggregating
        return waiting + self.active + self.archived + self.completed


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A living server and the tasks it works on."""

    info: ServerInfo
    workers: tuple[WorkerInfo, ...]


@dataclass(frozen=True, slots=True)
class DailyStats:
    """What a queue did on one UTC day."""

    queue: str
    day: date
    processed: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """A stored task with all that is known about it.

    ``next_process_at`` is when it is to run: now if pending, later if scheduled or in retry, else None.
    ``orphaned`` means active with a lease that ran out or is missing: its worker is gone. ``quarantined``
    is why no worker can use the message ("" = usable); type, payload and limits are then unknown.
    """

    id: str
    queue: str
    state: TaskState
    type: str = ""
    payload: bytes = b""
    headers: Mapping[str, str]
    max_retry: int = 0
    retried: int = 0
    last_error: str = ""
    last_failed_at: datetime | None = None
    timeout: timedelta = timedelta(0)
    deadline: datetime | None = None
    group: str = ""
    retention: timedelta = timedelta(0)
    completed_at: datetime | None = None
    pending_since: datetime | None = None
    next_process_at: datetime | None = None
    result: bytes = b""
    orphaned: bool = False
    quarantined: str = ""


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group of tasks that wait to be aggregated."""

    group: str
    size: int


class BulkReport(NamedTuple):
    """What a bulk operation did.

    ``done`` tasks were moved or deleted, ``ghosts`` ids without a task dropped, ``left`` entries passed over
    because their task is in another state, ``trimmed`` old tasks deleted to keep the archive's limits.
    """

    done: int = 0
    ghosts: int = 0
    left: int = 0
    trimmed: int = 0


@dataclass(frozen=True, slots=True)
class ClusterNodeInfo:
    """A node of a Redis Cluster that serves a queue."""

    name: str
    host: str
    port: int
    primary: bool
