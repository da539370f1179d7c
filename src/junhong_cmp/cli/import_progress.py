"""How fast an import goes and how long it still takes: pure."""

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from junhong_cmp.imports.model import ImportTask

_WINDOW: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Pace:
    """Rows a second over the last seconds, and the time left at that pace; None while unknown."""

    rows_per_s: float | None
    left: timedelta | None


class PaceMeter:
    """A pace meter is told where an import is, again and again, and tells its pace."""

    def __init__(self, lines: int | None) -> None:
        self.lines = lines
        self._seen: deque[tuple[float, int, int]] = deque()

    def observe(self, task: ImportTask, now: float) -> Pace:
        """Take where ``task`` is at ``now`` (monotonic seconds) and return its pace."""
        self.lines = task.file_lines or self.lines
        self._seen.append((now, task.total, task.next_line))
        since, total, line = self._seen[0]
        while since < now - _WINDOW.total_seconds():
            self._seen.popleft()
            since, total, line = self._seen[0]
        elapsed = now - since
        if elapsed <= 0 or task.total <= total:
            return Pace(None, None)
        lines_per_s = (task.next_line - line) / elapsed
        left = None
        if self.lines is not None and lines_per_s > 0:
            left = timedelta(seconds=max(self.lines + 1 - task.next_line, 0) / lines_per_s)
        return Pace((task.total - total) / elapsed, left)
