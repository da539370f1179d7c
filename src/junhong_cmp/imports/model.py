"""Import jobs and the outcome of each row, as PostgreSQL keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class ImportStatus(StrEnum):
    """Where an import job is; DONE, FAILED and CANCELLED are final."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more."""
        return self not in {ImportStatus.PENDING, ImportStatus.RUNNING}


class RowStatus(StrEnum):
    """What became of one row."""

    IMPORTED = "imported"
    SKIPPED = "skipped"
    REJECTED = "rejected"


class RowProblem(StrEnum):
    """Why a row was not imported, beside the problems of the ICCID itself (``cards.iccid``)."""

    UNREADABLE = "row_unreadable"
    CELL_TOO_LONG = "cell_too_long"
    CELL_SPOILED = "cell_spoiled"
    REPEATED_HEADER = "repeated_header"
    ICCID_MISSING = "iccid_missing"
    DUPLICATE_IN_FILE = "duplicate_in_file"
    EXISTS = "exists"
    OTHER_ACCOUNT = "other_account"


class RowResult(NamedTuple):
    """The outcome of the row that starts at ``line_no``; ``value`` is its ICCID as it may be shown."""

    line_no: int
    status: RowStatus
    value: str
    card_id: int | None = None
    reason_code: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTask:
    """An import job: one file for one account.

    ``total`` counts the rows dealt with so far; ``next_line`` is the first line of the file that is
    not yet dealt with, and where a run after a crash goes on. ``file_lines`` is about how many lines the
    file has, as far as that is known; ``sheet`` names the sheet of a workbook, empty for the first that has
    cards; ``notes`` say what is odd about the file as a whole. ``waits_for`` says what keeps an import
    that is not final from going on; it is tried again and again.
    """

    id: int
    account_id: int
    file_name: str
    file_key: str
    file_sha256: str
    file_bytes: int
    file_lines: int | None
    sheet: str
    status: ImportStatus
    total: int
    imported: int
    skipped: int
    rejected: int
    warned: int
    next_line: int
    result_key: str | None
    error: str | None
    waits_for: str | None
    notes: Sequence[str]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def awaits_result(self) -> bool:
        """Whether it was cancelled in its midst, and a worker has yet to store what became of its rows."""
        return self.status is ImportStatus.CANCELLED and self.total > 0 and self.result_key is None
