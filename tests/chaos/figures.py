"""The figures of a chaos run: gathered from the tests, printed as one JSON line at its end."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

PROPERTY = "chaos"
_ROW = re.compile(r"test_([a-z]\d+)_")
_SUMS = ("lost", "doubled", "stale_enqueues", "cron_unexplained")
_LONGEST = ("failover_s_max", "failover_tuned_s_max", "handover_s_max")


class FigureCollector:
    """A figure collector adds counts up and keeps the longest of each duration."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = dict.fromkeys(_SUMS, 0)
        self._longest: dict[str, float | None] = dict.fromkeys(_LONGEST)
        self._rows: set[str] = set()
        self._failed: set[str] = set()
        self.ran = False

    def take(self, report: pytest.TestReport) -> None:
        """Take what one test had to say; its row counts as run only if it passed."""
        row = _ROW.search(report.nodeid)
        if report.failed and row:
            self._failed.add(row[1].upper())
        if report.when == "call" and row and report.passed:
            self._rows.add(row[1].upper())
            self.ran = True
        if report.when != "teardown":  # until then the test's fixtures add to it
            return
        for name, figures in report.user_properties:
            if name == PROPERTY:
                self._add(orjson.loads(str(figures)))

    def _add(self, figures: Mapping[str, Any]) -> None:
        self.ran = True
        for name, figure in figures.items():
            if name in self._sums:
                self._sums[name] += figure
            elif name in self._longest:
                longest = self._longest[name]
                self._longest[name] = figure if longest is None else max(longest, figure)

    def line(self) -> str:
        """Return the JSON line; a duration nobody measured is null."""
        rows = sorted(self._rows - self._failed, key=_row_order)
        durations = {
            name: None if longest is None else round(longest, 2) for name, longest in self._longest.items()
        }
        return orjson.dumps({**self._sums, **durations, "rows": rows}).decode()


def _row_order(row: str) -> tuple[int, int]:
    return "PRDK".find(row[0]), int(row[1:])


def encode(figures: Mapping[str, Any]) -> str:
    """Return figures in the form a test hands them over in."""
    return orjson.dumps(dict(figures)).decode()
