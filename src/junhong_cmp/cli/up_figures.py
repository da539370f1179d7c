"""The figures ``junhong up`` shows: what was polled since it began, and how the cards stand now."""

import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from junhong_cmp.cards.store import count_cards
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.lag import lag_quantile
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.stats_store import PollTotals, load_totals

_RATE_SPAN_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Cards and polls at one moment; ``waiting`` and ``due`` count (card, task type) pairs."""

    cards: int
    waiting: int
    due: int
    polled: int
    failed: int
    throttled: int
    polled_per_s: float
    lag_p95: timedelta | None


class FigureReader:
    """A figure reader reads figures relative to the moment it was opened."""

    def __init__(self, pool: Pool, queue: PollingQueueManager, account_id: int) -> None:
        self._pool = pool
        self._queue = queue
        self._account_id = account_id
        self._since = datetime.now(UTC).replace(second=0, microsecond=0)
        self._baseline: PollTotals | None = None
        self._marks: deque[tuple[float, int]] = deque()

    async def open(self) -> None:
        """Remember what was polled earlier in this minute, so that it is not counted as ours."""
        self._baseline = await load_totals(self._pool, self._since)

    async def read(self) -> Figures:
        """Return the figures as they are now."""
        if self._baseline is None:
            raise RuntimeError("open() comes first")
        totals, baseline = await load_totals(self._pool, self._since), self._baseline
        counts = await self._queue.counts([self._account_id])
        polled = totals.done - baseline.done
        return Figures(
            cards=await count_cards(self._pool, self._account_id),
            waiting=counts.cards,
            due=counts.due,
            polled=polled,
            failed=totals.failed - baseline.failed,
            throttled=totals.throttled - baseline.throttled,
            polled_per_s=self._rate(polled),
            lag_p95=lag_quantile(_difference(totals, baseline), 0.95),
        )

    def _rate(self, polled: int) -> float:
        """Polls a second over the last ten: workers report once a second, which shorter spans would show."""
        now = time.monotonic()
        self._marks.append((now, polled))
        while len(self._marks) > 2 and now - self._marks[1][0] >= _RATE_SPAN_S:  # noqa: PLR2004 - two ends
            self._marks.popleft()
        earlier, before = self._marks[0]
        return (polled - before) / (now - earlier) if now > earlier else 0.0


def _difference(totals: PollTotals, baseline: PollTotals) -> list[int]:
    earlier = [*baseline.lag_histogram, *[0] * (len(totals.lag_histogram) - len(baseline.lag_histogram))]
    return [now - before for now, before in zip(totals.lag_histogram, earlier, strict=True)]
