"""What the broker hands out and takes back."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from junhong_cmp.asynq.asynq_pb2 import TaskMessage

QUARANTINE_REASONS: Final = {
    b"type": "任务键的类型不是哈希",
    b"size": "任务消息过大",
    b"group": "分组的键类型不对",
}
"""What a script's one word for setting a task aside means; other reasons are stored as they read."""


@dataclass(slots=True)
class LeasedTask:
    """A task in the hands of one worker.

    ``token`` names this very lease (hash field ``owner``); ``digest`` is the SHA-1 of the stored message.
    Both must still match when the task is handed back: a Go worker does not know ``owner``, but whoever moves
    a task out of ``active`` on another's behalf rewrites its message. ``lease_until`` is unix seconds.
    ``recovered_at`` too: when the task was taken back from a vanished worker; known of lapsed tasks only.
    """

    message: TaskMessage
    queue: str
    token: str
    lease_until: float
    digest: str = ""
    recovered_at: tuple[int, ...] = ()


@dataclass(slots=True)
class DequeueResult:
    """The outcome of one dequeue; ``ghosts`` are ids without a task, which were dropped."""

    tasks: list[LeasedTask] = field(default_factory=list)
    paused: bool = False
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    ghosts: list[str] = field(default_factory=list)


class AckKind(StrEnum):
    """What becomes of a task that its worker hands back."""

    DONE = "done"
    COMPLETE = "complete"
    RETRY = "retry"
    ARCHIVE = "archive"
    REQUEUE = "requeue"
    """Back to the head of its queue: it has waited its turn."""
    POSTPONE = "postpone"
    """Back to the tail of its queue: what waits behind it may go first."""


@dataclass(slots=True)
class Ack:
    """A worker hands a task back.

    ``at`` (unix seconds) is the retry time of RETRY. ``is_failure`` False keeps ``retried`` and the counters
    as they are (RETRY only). ``expired_before`` (unix seconds, 0 = off) makes the ack hold only while the
    lease is not younger than that: a recoverer sets it, so that a worker which just renewed keeps its task.
    The recovery is then noted with the task.
    """

    kind: AckKind
    task: LeasedTask
    error: str = ""
    is_failure: bool = True
    at: int | None = None
    expired_before: int = 0


class AckOutcome(StrEnum):
    """OK: written. SUPERSEDED: the task belongs to somebody else now. MISSING: the task is gone."""

    OK = "ok"
    SUPERSEDED = "superseded"
    MISSING = "missing"


class RepairReport(NamedTuple):
    """How many entries a repair put right, by what was wrong with them."""

    leases_restored: int
    actives_restored: int
    leases_dropped: int
    ghosts_dropped: int

    @property
    def total(self) -> int:
        """All repairs together."""
        return sum(self)
