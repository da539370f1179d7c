from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.waiting import FakeClock, wait_until

from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.polling.lag import BUCKETS, lag_bucket, lag_quantile
from junhong_cmp.polling.stats import PollOutcome, PollStats
from junhong_cmp.polling.stats_store import load_account_totals, load_totals
from junhong_cmp.polling.tasks import TaskType

CARDDATA, CARDSTATUS = TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


async def test_counts_of_several_processes_add_up_in_their_minute(pool: Pool, clock: FakeClock) -> None:
    one, other = PollStats(pool, clock=clock), PollStats(pool, clock=clock)
    for stats in (one, other):
        stats.count(CARDDATA, 7, PollOutcome.DONE, 100)
        stats.count(CARDDATA, 7, PollOutcome.FAILED, 10_000)
        stats.count(CARDSTATUS, 7, PollOutcome.SUPERSEDED)
        stats.count(CARDDATA, 7, PollOutcome.THROTTLED)
        stats.count_due(CARDDATA, 7, 3)
        await stats.flush()
    clock.advance(60)
    one.count(CARDDATA, 7, PollOutcome.DONE, 100)
    await one.flush()
    await one.flush()
    totals = await load_totals(pool, LONG_AGO)
    assert (totals.due, totals.done, totals.failed, totals.throttled, totals.superseded) == (6, 3, 2, 2, 2)
    assert sum(totals.lag_histogram) == 5
    assert totals.lag_p95 is not None
    assert timedelta(seconds=10) <= totals.lag_p95 <= timedelta(seconds=12)
    assert await pool.fetchval("SELECT count(*) FROM poll_minute") == 3
    later = await load_totals(pool, clock.now() - timedelta(seconds=1))
    assert later.done == 1


async def test_no_polls_have_no_lag(pool: Pool) -> None:
    totals = await load_totals(pool, LONG_AGO)
    assert (totals.done, totals.lag_p95) == (0, None)


async def test_totals_are_told_apart_by_account(pool: Pool, clock: FakeClock) -> None:
    stats = PollStats(pool, clock=clock)
    stats.count(CARDDATA, 7, PollOutcome.DONE, 100)
    stats.count(CARDDATA, 8, PollOutcome.DONE, 10_000)
    stats.count(CARDSTATUS, 8, PollOutcome.FAILED, 10_000)
    stats.count(CARDSTATUS, 8, PollOutcome.THROTTLED)
    stats.count(CARDDATA, 9, PollOutcome.DONE, 1)
    await stats.flush()
    totals = await load_account_totals(pool, LONG_AGO, [7, 8, 10])
    assert set(totals) == {7, 8}
    assert [(each.done, each.failed, each.throttled) for each in totals.values()] == [(1, 0, 0), (1, 1, 1)]
    assert [sum(each.lag_histogram) for each in totals.values()] == [1, 2]
    assert totals[7].lag_p95 is not None
    assert totals[7].lag_p95 < timedelta(seconds=1)
    assert await load_account_totals(pool, clock.now() + timedelta(minutes=1), [7, 8]) == {}


async def test_errors_are_grouped(pool: Pool, clock: FakeClock) -> None:
    stats = PollStats(pool, clock=clock)
    stats.count_error(CARDDATA, 7, "transient", "网关超时", 1)
    stats.count_error(CARDDATA, 7, "transient", "网关超时", 2)
    await stats.flush()
    clock.advance(5)
    stats.count_error(CARDDATA, 7, "transient", "网关超时", 3)
    stats.count_error(CARDDATA, 7, "transient", "x" * 1000, 3)
    await stats.flush()
    rows = await pool.fetch("SELECT count, sample_card_id, length(message) FROM poll_error ORDER BY count")
    assert [tuple(row) for row in rows] == [(1, 3, 200), (3, 3, 4)]


async def test_what_could_not_be_written_is_written_later(
    pool: Pool, clock: FakeClock, postgres_server: EmbeddedPostgres
) -> None:
    stats = PollStats(pool, clock=clock)
    stats.count(CARDDATA, 7, PollOutcome.DONE, 5)
    stats.count_error(CARDDATA, 7, "transient", "网关超时", 1)
    await postgres_server.stop()
    with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
        await stats.flush()
    stats.count(CARDDATA, 7, PollOutcome.DONE, 5)
    stats.count_error(CARDDATA, 7, "transient", "网关超时", 1)
    await postgres_server.start()
    await stats.flush()
    totals = await load_totals(pool, LONG_AGO)
    assert (totals.done, sum(totals.lag_histogram)) == (2, 2)
    assert await pool.fetchval("SELECT count FROM poll_error") == 2


async def test_the_loop_flushes_regularly_outlives_an_outage_and_flushes_at_the_end(
    pool: Pool, postgres_server: EmbeddedPostgres
) -> None:
    stats = PollStats(pool, flush_every=timedelta(milliseconds=20))
    await stats.start()
    stats.count(CARDDATA, 7, PollOutcome.DONE)

    async def written() -> bool:
        return (await load_totals(pool, LONG_AGO)).done == 1

    await wait_until(written, description="the first flush")
    with capture_logs() as logs:
        await postgres_server.stop()
        stats.count(CARDDATA, 7, PollOutcome.DONE)
        await wait_until(lambda: logs, description="the warning")
        await postgres_server.start()
        await wait_until(lambda: logs[-1]["event"] == "轮询统计已补写", description="the end of the outage")
    assert [entry["event"] for entry in logs] == ["轮询统计写入失败，稍后补写", "轮询统计已补写"]
    stats.count(CARDDATA, 7, PollOutcome.DONE)
    await stats.stop()
    await stats.stop()
    assert (await load_totals(pool, LONG_AGO)).done == 3


@given(st.integers(0, 2**24 - 1))
def test_a_quantile_is_right_within_a_fifth(lag_ms: int) -> None:
    histogram = [0] * BUCKETS
    histogram[lag_bucket(lag_ms)] = 1
    found = lag_quantile(histogram, 0.95)
    assert found is not None
    assert lag_ms - 0.01 <= found / timedelta(milliseconds=1) <= lag_ms * 1.19 + 0.2


def test_quantiles_count_from_the_short_end() -> None:
    histogram = [0] * BUCKETS
    histogram[lag_bucket(10)], histogram[lag_bucket(5000)] = 95, 5
    short, long = lag_quantile(histogram, 0.95), lag_quantile(histogram, 0.96)
    assert short is not None
    assert long is not None
    assert short < timedelta(milliseconds=15)
    assert long > timedelta(seconds=4)
    assert lag_quantile([], 0.95) is None


def test_lags_beyond_the_scale_and_below_it_are_kept_in_its_ends() -> None:
    assert lag_bucket(-5) == 0
    assert lag_bucket(10**12) == BUCKETS - 1
