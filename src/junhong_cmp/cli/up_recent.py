"""What was polled lately, out of counts that only grow."""

import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from junhong_cmp.polling.stats_store import PollTotals

NOTHING: Final = PollTotals(due=0, done=0, failed=0, throttled=0, superseded=0, lag_histogram=())


class RecentPolls:
    """Recent polls are those of the last ``span``, as far as counts were noted; the first begins at nothing.

    Workers report once a second, not oftener, and ``clock`` is monotonic, in seconds.
    """

    def __init__(self, span: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        self._span_s = span.total_seconds()
        self._clock = clock
        self._marks: deque[tuple[float, PollTotals]] = deque([(clock(), NOTHING)])
        self.polls = NOTHING
        self.per_s = 0.0

    def note(self, totals: PollTotals) -> None:
        """Take counts down; ``polls`` and ``per_s`` then tell by how much they grew over the span."""
        now = self._clock()
        self._marks.append((now, totals))
        while len(self._marks) > 2 and now - self._marks[1][0] >= self._span_s:  # noqa: PLR2004 - two ends
            self._marks.popleft()
        earlier, before = self._marks[0]
        self.polls = polls_since(totals, before)
        self.per_s = self.polls.done / (now - earlier) if now > earlier else 0.0


def polls_since(totals: PollTotals, earlier: PollTotals) -> PollTotals:
    """Return what has been counted beyond ``earlier``."""
    before = [*earlier.lag_histogram, *[0] * (len(totals.lag_histogram) - len(earlier.lag_histogram))]
    return PollTotals(
        due=totals.due - earlier.due,
        done=totals.done - earlier.done,
        failed=totals.failed - earlier.failed,
        throttled=totals.throttled - earlier.throttled,
        superseded=totals.superseded - earlier.superseded,
        lag_histogram=[now - then for now, then in zip(totals.lag_histogram, before, strict=True)],
    )
