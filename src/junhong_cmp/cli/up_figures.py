"""The figures ``junhong up`` shows: what was polled since it began, and how the cards stand now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import count_cards
from junhong_cmp.cli.up_pauses import Pause, load_pauses
from junhong_cmp.cli.up_recent import NOTHING, RecentPolls, polls_since
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.hold_notice import held_for
from junhong_cmp.polling.lag import lag_quantile
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.stats_store import PollTotals, load_account_totals

_RATE_SPAN: Final = timedelta(seconds=10)
_LAG_SPAN: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFigures:
    """One account at one moment, with the last pause it took since the run began, in force or not.

    ``lag_p95`` is that of the whole run, ``recent_lag_p95`` that of the last minute.
    """

    account: str
    driver: str
    cards: int
    polled: int
    failed: int
    throttled: int
    polled_per_s: float
    lag_p95: timedelta | None
    recent_lag_p95: timedelta | None
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
    recent_lag_p95: timedelta | None
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
        self._rates = {account.id: RecentPolls(_RATE_SPAN) for account in accounts}
        self._lags = {account.id: RecentPolls(_LAG_SPAN) for account in accounts}

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
            number: polls_since(totals.get(number, NOTHING), baseline.get(number, NOTHING))
            for number in self._ids
        }
        moment = datetime.now(UTC) if as_of is None else as_of
        accounts = [
            await self._account(account, polls[account.id], pauses.get(account.id), moment)
            for account in self._accounts
        ]
        counts = await self._queue.counts(self._ids)
        return Figures(
            cards=sum(each.cards for each in accounts),
            waiting=counts.cards,
            due=counts.due,
            polled=sum(each.polled for each in accounts),
            failed=sum(each.failed for each in accounts),
            throttled=sum(each.throttled for each in accounts),
            polled_per_s=sum(each.polled_per_s for each in accounts),
            lag_p95=_lag_p95(polls.values()),
            recent_lag_p95=_lag_p95(each.polls for each in self._lags.values()),
            accounts=tuple(accounts),
            claims_held=await held_for(self._redis),
        )

    async def _totals(self) -> Mapping[int, PollTotals]:
        minute = self._opened.replace(second=0, microsecond=0)
        return await load_account_totals(self._pool, minute, self._ids)

    async def _account(
        self, account: CarrierAccount, polls: PollTotals, pause: Pause | None, moment: datetime
    ) -> AccountFigures:
        rate, lags = self._rates[account.id], self._lags[account.id]
        for recent in (rate, lags):
            recent.note(polls)
        return AccountFigures(
            account=account.code,
            driver=account.driver,
            cards=await count_cards(self._pool, account.id),
            polled=polls.done,
            failed=polls.failed,
            throttled=polls.throttled,
            polled_per_s=rate.per_s,
            lag_p95=polls.lag_p95,
            recent_lag_p95=lags.polls.lag_p95,
            pause=pause,
            paused=pause is not None and pause.is_in_force(moment),
        )


def _lag_p95(polls: Iterable[PollTotals]) -> timedelta | None:
    """Return the 95th percentile of the lags of all these together."""
    histograms = [each.lag_histogram for each in polls]
    return lag_quantile([sum(bucket) for bucket in zip_longest(*histograms, fillvalue=0)], 0.95)
