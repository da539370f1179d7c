"""Stopping and resuming a card takes carriers a while: the state of such an operation."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class OperationState(StrEnum):
    """How far a stop or resume has come; an operation the carrier never saw is unknown."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OperationAnswer:
    """The state of the stop or resume sent as ``request_id``."""

    request_id: str
    iccid: str
    state: OperationState
    at: datetime
