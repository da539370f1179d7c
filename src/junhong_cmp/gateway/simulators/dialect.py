"""What a simulated carrier adds to the common frame: how it is asked, and in what words it answers.

The frame (``simulator_service``) does the rest for all of them: delay, faults, the limit of calls, the
request log. A dialect is pure: a request and an instant in, bytes out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulator_faults import Fault

OK: Final = "ok"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request as it came; ``query`` holds the decoded parameters of its address."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, and in ``outcome`` the word for it in the log: ok or the error code of the contract."""

    status: int
    body: bytes
    outcome: str = OK
    retry_after_s: int | None = None
    content_type: str = JSON


PROXY_ERROR: Final = Reply(
    502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", outcome="transient", content_type="text/html"
)
"""The page of something between us and any carrier."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request that was admitted and understood.

    ``op`` is its word in the log: usage, status, realname, session, stop, resume, operation, list, token,
    info; a batch has the word of a single one. ``fields`` is what else the dialect wants to remember of it.
    """

    op: str
    account: str
    iccids: tuple[str, ...] = ()
    request_id: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SimulatorParts:
    """What dialects are made of: the cards, and the key that callers must have."""

    book: CardBook
    credential: Credential


class Dialect(Protocol):
    """One carrier's interface from the carrier's side."""

    def admit(self, request: Request, now: datetime) -> Question | Reply:
        """Check address, signature or token, and form; return what is asked, or the refusal."""
        ...

    def answer(self, question: Question, now: datetime) -> Reply:
        """Answer as of ``now``."""
        ...

    def too_fast(self, retry_after_s: int) -> Reply:
        """Refuse a call above the limit, in the carrier's own words."""
        ...

    def fail(self, fault: Fault) -> Reply:
        """Fail as told."""
        ...
