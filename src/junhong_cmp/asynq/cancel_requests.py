"""Operators cancel running tasks: what then becomes of a task, and how the wish travels.

Go publishes the bare id of the task on one channel, and a task so cancelled is retried. A request that says
what is to become of the task is published as a second message before it: Go's servers know no task of that
name and pass it over, then hear the bare id.
"""

from enum import StrEnum
from typing import Final, NamedTuple

_SEPARATOR: Final = "\x1f"


class CancelPolicy(StrEnum):
    """RETRY: a failure, as in Go. ARCHIVE: set aside, no retry. DROP: gone, counts as processed."""

    RETRY = "retry"
    ARCHIVE = "archive"
    DROP = "drop"


class CancelRequest(NamedTuple):
    """One wish: cancel ``task_id``; without ``policy`` the server's own applies."""

    task_id: str
    policy: CancelPolicy | None = None


def encode_requests(request: CancelRequest) -> list[str]:
    """Return the messages to publish for ``request``, in their order."""
    if request.policy is None:
        return [request.task_id]
    return [f"{request.task_id}{_SEPARATOR}{request.policy}", request.task_id]


def decode_request(raw: bytes) -> CancelRequest:
    """Return the wish a message stands for; whatever is no extended request is taken for an id."""
    text = raw.decode(errors="replace")
    task_id, separator, policy = text.rpartition(_SEPARATOR)
    if separator and policy in set(CancelPolicy):
        return CancelRequest(task_id, CancelPolicy(policy))
    return CancelRequest(text)
