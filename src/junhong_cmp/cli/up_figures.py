"""The figures ``junhong up`` shows: what was polled since it began, and how the cards stand now."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import count_cards
from junhong_cmp.cli.up_pauses import Pause, load_pauses
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.hold_notice import held_for
from junhong_cmp.polling.lag import lag_quantile
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.stats_store import PollTotals, load_account_totals

_RATE_SPAN_S: Final = 10.0
_NOTHING: Final = PollTotals(due=0, done=0, failed=0, throttled=0, superseded=0, lag_histogram=())


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFigures:
    """One account at one moment, with the last pause it took since the run began, in force or not."""

    account: str
    driver: str
    cards: int
    polled: int
    failed: int
    throttled: int
    polled_per_s: float
    lag_p95: timedelta | None
    pause: Pause | None
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Cards and polls at one moment; ``waiting`` and ``due`` count (card, task type) pairs.

    ``claims_held`` is for how long the leader will claim nothing yet because Redis lost data.
    """

    cards: int
    waiting: int
    due: int
    polled: int
    failed: int
    throttled: int
    polled_per_s: float
    lag_p95: timedelta | None
    accounts: tuple[AccountFigures, ...]
    claims_held: timedelta | None = None


class FigureReader:
    """A figure reader reads figures relative to the moment it was opened."""

    def __init__(
        self,
        pool: Pool,
        redis: RedisClient,
        queue: PollingQueueManager,
        accounts: Sequence[CarrierAccount],
    ) -> None:
        self._pool = pool
        self._redis = redis
        self._queue = queue
        self._accounts = tuple(accounts)
        self._ids = [account.id for account in accounts]
        self._opened = datetime.now(UTC)
        self._baseline: Mapping[int, PollTotals] | None = None
        self._rates = {account.id: _Rate() for account in accounts}

    async def open(self) -> None:
        """Remember what was polled earlier in this minute, so that it is not counted as ours."""
        self._opened = datetime.now(UTC)
        self._baseline = await self._totals()

    async def read(self, as_of: datetime | None = None) -> Figures:
        """Return the figures as they are now; accounts pause or not as they did at ``as_of``."""
        if self._baseline is None:
            raise RuntimeError("open() comes first")
        baseline, totals = self._baseline, await self._totals()
        pauses = await load_pauses(self._pool, self._ids, since=self._opened)
        polls = {
            number: _since(totals.get(number, _NOTHING), baseline.get(number, _NOTHING))
            for number in self._ids
        }
        moment = datetime.now(UTC) if as_of is None else as_of
        accounts = [
            await self._account(account, polls[account.id], pauses.get(account.id), moment)
            for account in self._accounts
        ]
        counts = await self._queue.counts(self._ids)
        histograms = [each.lag_histogram for each in polls.values()]
        return Figures(
            cards=sum(each.cards for each in accounts),
            waiting=counts.cards,
            due=counts.due,
            polled=sum(each.polled for each in accounts),
            failed=sum(each.failed for each in accounts),
            throttled=sum(each.throttled for each in accounts),
            polled_per_s=sum(each.polled_per_s for each in accounts),
            lag_p95=lag_quantile([sum(bucket) for bucket in zip_longest(*histograms, fillvalue=0)], 0.95),
            accounts=tuple(accounts),
            claims_held=await held_for(self._redis),
        )

    async def _totals(self) -> Mapping[int, PollTotals]:
        minute = self._opened.replace(second=0, microsecond=0)
        return await load_account_totals(self._pool, minute, self._ids)

    async def _account(
        self, account: CarrierAccount, polls: PollTotals, pause: Pause | None, moment: datetime
    ) -> AccountFigures:
        return AccountFigures(
            account=account.code,
            driver=account.driver,
            cards=await count_cards(self._pool, account.id),
            polled=polls.done,
            failed=polls.failed,
            throttled=polls.throttled,
            polled_per_s=self._rates[account.id].note(polls.done),
            lag_p95=polls.lag_p95,
            pause=pause,
            paused=pause is not None and pause.is_in_force(moment),
        )


class _Rate:
    """A rate is that of the last ten seconds: workers report once a second, not oftener."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, count: int) -> float:
        """Take a count down and return by how much it grows a second."""
        now = time.monotonic()
        self._marks.append((now, count))
        while len(self._marks) > 2 and now - self._marks[1][0] >= _RATE_SPAN_S:  # noqa: PLR2004 - two ends
            self._marks.popleft()
        earlier, before = self._marks[0]
        return (count - before) / (now - earlier) if now > earlier else 0.0


def _since(totals: PollTotals, baseline: PollTotals) -> PollTotals:
    """Return what has been counted beyond the baseline."""
    earlier = [*baseline.lag_histogram, *[0] * (len(totals.lag_histogram) - len(baseline.lag_histogram))]
    return PollTotals(
        due=totals.due - baseline.due,
        done=totals.done - baseline.done,
        failed=totals.failed - baseline.failed,
        throttled=totals.throttled - baseline.throttled,
        superseded=totals.superseded - baseline.superseded,
        lag_histogram=[now - before for now, before in zip(totals.lag_histogram, earlier, strict=True)],
    )
