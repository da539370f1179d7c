"""The seven states of a task, spelled as in the ``state`` field of its hash (internal/base: TaskState)."""

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task is; each state but ``active`` has one list or sorted set that holds the id."""

    PENDING = "pending"
    ACTIVE = "active"
    SCHEDULED = "scheduled"
    RETRY = "retry"
    ARCHIVED = "archived"
    COMPLETED = "completed"
    AGGREGATING = "aggregating"
