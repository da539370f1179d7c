"""The simulated carrier's own record of every request, and the proof that can be drawn from it.

One JSON object a line: ``t_start``, ``t_end`` (unix seconds of one steady clock), ``op``, ``iccid``,
``account``, ``outcome``. A batch query writes one line a card, with the ``op`` of a single one.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import orjson

_FLUSH_EVERY_RECORDS: Final = 20_000


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call about one card, as the carrier saw it."""

    t_start: float
    t_end: float
    op: str
    iccid: str
    account: str
    outcome: str


class RequestLog:
    """A request log gathers records in memory and appends them to a file when it is told to."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._records: list[CallRecord] = []
        self._epoch_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        """Return unix seconds of a steady clock: a step of the wall clock must not forge an overlap."""
        return self._epoch_s + time.monotonic()

    def open(self) -> None:
        """Open the file for appending; without a path records are dropped."""
        if self._path is not None:
            self._file = self._path.open("ab")

    def add(self, record: CallRecord) -> None:
        """Keep a record until the next flush."""
        if self._file is None:
            return
        self._records.append(record)
        if len(self._records) >= _FLUSH_EVERY_RECORDS:
            self.flush()

    def flush(self) -> None:
        """Write whole lines only, so that a reader at any moment sees at most one that is cut."""
        if self._file is None or not self._records:
            return
        records, self._records = self._records, []
        lines = (orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)
        self._file.write(b"".join(lines))
        self._file.flush()

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two calls of one type about one card, the second begun before the first had ended."""

    first: CallRecord
    second: CallRecord


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log shows: calls by (iccid, op), calls by outcome, and every overlap."""

    calls: Counter[tuple[str, str]]
    outcomes: Counter[str]
    overlaps: tuple[Overlap, ...]

    def cards(self, op: str) -> frozenset[str]:
        """Return the cards that were asked about with ``op``."""
        return frozenset(iccid for iccid, asked in self.calls if asked == op)


def read_log(path: Path) -> Iterator[CallRecord]:
    """Read a log that may still be written to, or whose writer was killed: a cut last line is left out."""
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield CallRecord(**orjson.loads(line))


def summarise(records: Iterable[CallRecord]) -> LogSummary:
    """Count the calls and find the overlaps, whatever order the records are in."""
    ordered = sorted(records, key=lambda record: record.t_start)
    longest: dict[tuple[str, str], CallRecord] = {}
    overlaps: list[Overlap] = []
    for record in ordered:
        key = (record.iccid, record.op)
        earlier = longest.get(key)
        if earlier is not None and record.t_start < earlier.t_end:
            overlaps.append(Overlap(earlier, record))
        if earlier is None or record.t_end > earlier.t_end:
            longest[key] = record
    return LogSummary(
        calls=Counter((record.iccid, record.op) for record in ordered),
        outcomes=Counter(record.outcome for record in ordered),
        overlaps=tuple(overlaps),
    )
