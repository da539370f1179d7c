"""Poll figures in PostgreSQL: one row a minute, account and task type, and grouped errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Final

from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.polling.lag import lag_quantile
from junhong_cmp.polling.tasks import TaskType

_ADD_MINUTE = """
INSERT INTO poll_minute AS m
    (task_type, account_id, minute, due, done, failed, throttled, superseded, lag_histogram)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (task_type, account_id, minute) DO UPDATE SET
    due = m.due + excluded.due,
    done = m.done + excluded.done,
    failed = m.failed + excluded.failed,
    throttled = m.throttled + excluded.throttled,
    superseded = m.superseded + excluded.superseded,
    lag_histogram = ARRAY(
        SELECT coalesce(a, 0) + coalesce(b, 0)
        FROM unnest(m.lag_histogram, excluded.lag_histogram) WITH ORDINALITY AS t (a, b, i)
        ORDER BY i)
"""
_ADD_ERROR = """
INSERT INTO poll_error AS e
    (task_type, account_id, code, message, count, sample_card_id, first_at, last_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
ON CONFLICT (task_type, account_id, code, message) DO UPDATE SET
    count = e.count + excluded.count,
    sample_card_id = excluded.sample_card_id,
    last_at = greatest(e.last_at, excluded.last_at)
"""
_TOTALS = """
SELECT coalesce(sum(due), 0) AS due, coalesce(sum(done), 0) AS done, coalesce(sum(failed), 0) AS failed,
    coalesce(sum(throttled), 0) AS throttled, coalesce(sum(superseded), 0) AS superseded,
    ARRAY(
        SELECT sum(n)::bigint
        FROM poll_minute AS h, unnest(h.lag_histogram) WITH ORDINALITY AS t (n, i)
        WHERE h.minute >= $1 GROUP BY i ORDER BY i) AS lag_histogram
FROM poll_minute WHERE minute >= $1
"""
_ACCOUNT_TOTALS = """
WITH recent AS (SELECT * FROM poll_minute WHERE minute >= $1 AND account_id = ANY($2::bigint[])),
    lags AS (
        SELECT account_id, i, sum(n)::bigint AS n
        FROM recent, unnest(lag_histogram) WITH ORDINALITY AS t (n, i) GROUP BY account_id, i)
SELECT r.account_id, sum(due) AS due, sum(done) AS done, sum(failed) AS failed,
    sum(throttled) AS throttled, sum(superseded) AS superseded,
    ARRAY(SELECT n FROM lags AS l WHERE l.account_id = r.account_id ORDER BY i) AS lag_histogram
FROM recent AS r GROUP BY r.account_id ORDER BY r.account_id
"""


@dataclass(slots=True)
class MinuteCounts:
    """What was counted in one minute for one account and task type; a lag histogram as ``polling.lag``."""

    due: int = 0
    done: int = 0
    failed: int = 0
    throttled: int = 0
    superseded: int = 0
    lag_histogram: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """The same thing going wrong ``count`` times."""

    task_type: TaskType
    account_id: int
    code: str
    message: str
    count: int
    sample_card_id: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PollTotals:
    """Polls of all task types over a span of time, of every account or of one."""

    due: int
    done: int
    failed: int
    throttled: int
    superseded: int
    lag_histogram: Sequence[int]

    @property
    def lag_p95(self) -> timedelta | None:
        """The lag, from due to started, that 95 % of the polls kept; None without polls."""
        return lag_quantile(self.lag_histogram, 0.95)


_FIGURES: Final = tuple(figure.name for figure in fields(PollTotals))

MinuteKey = tuple[TaskType, int, datetime]


async def add_minutes(conn: Conn, minutes: Sequence[tuple[MinuteKey, MinuteCounts]]) -> None:
    """Add counts to their minutes; call it in a transaction."""
    await conn.executemany(
        _ADD_MINUTE,
        [
            (*key, c.due, c.done, c.failed, c.throttled, c.superseded, c.lag_histogram)
            for key, c in sorted(minutes, key=lambda item: item[0])
        ],
    )


async def add_errors(conn: Conn, groups: Sequence[ErrorGroup]) -> None:
    """Add occurrences to their error groups; call it in a transaction."""
    await conn.executemany(
        _ADD_ERROR,
        sorted(
            (g.task_type, g.account_id, g.code, g.message, g.count, g.sample_card_id, g.last_at)
            for g in groups
        ),
    )


async def load_totals(conn: Conn | Pool, since: datetime) -> PollTotals:
    """Return the totals of all whole minutes from ``since`` on."""
    row = await conn.fetchrow(_TOTALS, since)
    if row is None:  # pragma: no cover - an aggregate always returns its row
        raise LookupError(since)
    return PollTotals(**dict(row))


async def load_account_totals(
    conn: Conn | Pool, since: datetime, account_ids: Sequence[int]
) -> dict[int, PollTotals]:
    """Return the totals of each of the accounts that was polled in the minutes from ``since`` on."""
    rows = await conn.fetch(_ACCOUNT_TOTALS, since, account_ids)
    return {row["account_id"]: PollTotals(**{name: row[name] for name in _FIGURES}) for row in rows}
