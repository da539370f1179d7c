"""What this process polled, counted in memory and written to PostgreSQL each second."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import structlog

from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS, in_transaction
from junhong_cmp.polling.lag import BUCKETS, lag_bucket
from junhong_cmp.polling.stats_store import ErrorGroup, MinuteCounts, MinuteKey, add_errors, add_minutes
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_MINUTE: Final = timedelta(minutes=1)
_MOST_MINUTES: Final = 20_000
_MOST_GROUPS: Final = 1_000
_MESSAGE_LIMIT: Final = 200
_LAST_ATTEMPTS: Final = 3
_LAST_PAUSE_S: Final = 0.2


class PollOutcome(StrEnum):
    """How a turn ended; the values name columns of ``poll_minute``."""

    DONE = "done"
    FAILED = "failed"
    THROTTLED = "throttled"
    SUPERSEDED = "superseded"


class PollStats:
    """Poll stats count outcomes and lags, and hand them to PostgreSQL each second.

    While PostgreSQL is away the counts wait here, up to a bound; beyond it new minutes are dropped.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        flush_every: timedelta = timedelta(seconds=1),
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._flush_s = flush_every.total_seconds()
        self._clock = clock if clock is not None else SystemClock()
        self._minutes: dict[MinuteKey, MinuteCounts] = {}
        self._errors: dict[tuple[TaskType, int, str, str], ErrorGroup] = {}
        self._dropping = False
        self._this_minute = datetime.min.replace(tzinfo=UTC)
        self._stopping = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to flush regularly."""
        self._stopping.clear()
        self._loop = asyncio.create_task(self._run(), name="polling:stats")

    async def stop(self) -> None:
        """Flush once more and end."""
        if self._loop is None:
            return
        self._stopping.set()
        await self._loop
        self._loop = None

    def count(
        self, task_type: TaskType, account_id: int, outcome: PollOutcome, lag_ms: int | None = None
    ) -> None:
        """Count one turn; ``lag_ms`` is how long after its due time the poll started."""
        counts = self._counts(task_type, account_id)
        match outcome:
            case PollOutcome.DONE:
                counts.done += 1
            case PollOutcome.FAILED:
                counts.failed += 1
            case PollOutcome.THROTTLED:
                counts.throttled += 1
            case PollOutcome.SUPERSEDED:
                counts.superseded += 1
        if lag_ms is not None:
            if not counts.lag_histogram:
                counts.lag_histogram = [0] * BUCKETS
            counts.lag_histogram[lag_bucket(lag_ms)] += 1

    def count_due(self, task_type: TaskType, account_id: int, cards: int) -> None:
        """Count cards the scheduler found due and handed out."""
        self._counts(task_type, account_id).due += cards

    def count_error(
        self, task_type: TaskType, account_id: int, code: str, message: str, card_id: int
    ) -> None:
        """Count one error in its group; ``message`` names no card and no secret."""
        key = (task_type, account_id, code, message[:_MESSAGE_LIMIT])
        group = self._errors.get(key)
        if group is None and len(self._errors) >= _MOST_GROUPS:
            return
        self._errors[key] = ErrorGroup(
            task_type=task_type,
            account_id=account_id,
            code=code,
            message=key[3],
            count=1 if group is None else group.count + 1,
            sample_card_id=card_id,
            last_at=self._clock.now(),
        )

    async def flush(self) -> None:
        """Write what was counted; when that fails it is kept for the next time.

        Raises:
            DATABASE_FAULTS: PostgreSQL could not take it.

        """
        if not self._minutes and not self._errors:
            return
        minutes, errors = self._minutes, self._errors
        self._minutes, self._errors = {}, {}

        async def write(conn: Conn) -> None:
            await add_minutes(conn, list(minutes.items()))
            await add_errors(conn, list(errors.values()))

        try:
            await in_transaction(self._pool, write)
        except BaseException:
            self._put_back(minutes, errors)
            raise
        self._dropping = False

    def _counts(self, task_type: TaskType, account_id: int) -> MinuteCounts:
        key = (task_type, account_id, self._minute())
        counts = self._minutes.get(key)
        if counts is None:
            counts = MinuteCounts()
            if len(self._minutes) < _MOST_MINUTES:
                self._minutes[key] = counts
            elif not self._dropping:
                self._dropping = True
                log.warning("轮询统计积压过多，丢弃新的统计", kept=len(self._minutes))
        return counts

    def _minute(self) -> datetime:
        now = self._clock.now()
        if not self._this_minute <= now < self._this_minute + _MINUTE:
            self._this_minute = now.replace(second=0, microsecond=0)
        return self._this_minute

    def _put_back(
        self,
        minutes: dict[MinuteKey, MinuteCounts],
        errors: dict[tuple[TaskType, int, str, str], ErrorGroup],
    ) -> None:
        for key, counts in minutes.items():
            newer = self._minutes.get(key)
            self._minutes[key] = counts if newer is None else _sum(counts, newer)
        for group_key, group in errors.items():
            later = self._errors.get(group_key)
            self._errors[group_key] = (
                group if later is None else replace(later, count=group.count + later.count)
            )

    async def _run(self) -> None:
        reachable = True
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._flush_s):
                    await self._stopping.wait()
            written = await self._try_flush()
            if reachable and not written:
                log.warning("轮询统计写入失败，稍后补写")
            elif written and not reachable:
                log.info("轮询统计已补写")
            reachable = written
        await self._flush_last()

    async def _flush_last(self) -> None:
        for _ in range(_LAST_ATTEMPTS):  # a pooled connection may be stale just after an outage
            if await self._try_flush():
                return
            await asyncio.sleep(_LAST_PAUSE_S)
        log.warning("轮询统计未能写入，已放弃", minutes=len(self._minutes))

    async def _try_flush(self) -> bool:
        try:
            await self.flush()
        except DATABASE_FAULTS:
            return False
        return True


def _sum(left: MinuteCounts, right: MinuteCounts) -> MinuteCounts:
    histogram = left.lag_histogram or right.lag_histogram
    if left.lag_histogram and right.lag_histogram:
        histogram = [a + b for a, b in zip(left.lag_histogram, right.lag_histogram, strict=True)]
    return MinuteCounts(
        due=left.due + right.due,
        done=left.done + right.done,
        failed=left.failed + right.failed,
        throttled=left.throttled + right.throttled,
        superseded=left.superseded + right.superseded,
        lag_histogram=list(histogram),
    )
