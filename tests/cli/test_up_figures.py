"""The figures of one run, apart from those of the runs before it."""

from datetime import UTC, datetime

import pytest
from redis.asyncio import Redis

from junhong_cmp.cli.up_demo import ensure_account
from junhong_cmp.cli.up_figures import FigureReader
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.lag import BUCKETS, lag_bucket
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.stats_store import MinuteCounts, add_minutes
from junhong_cmp.polling.tasks import TaskType


async def _count(pool: Pool, account_id: int, *, done: int, failed: int = 0, lag_ms: int) -> None:
    histogram = [0] * BUCKETS
    histogram[lag_bucket(lag_ms)] = done
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    counts = MinuteCounts(done=done, failed=failed, lag_histogram=histogram)
    async with pool.acquire() as conn, conn.transaction():
        await add_minutes(conn, [((TaskType.POLLING_CARDDATA, account_id, minute), counts)])


async def test_polls_of_an_earlier_run_in_the_same_minute_do_not_count(pool: Pool, redis: Redis) -> None:
    account = await ensure_account(pool)
    queue = PollingQueueManager(redis)
    reader = FigureReader(pool, queue, account.id)
    with pytest.raises(RuntimeError):
        await reader.read()
    await _count(pool, account.id, done=50, failed=5, lag_ms=60_000)
    await reader.open()
    nothing = await reader.read()
    assert (nothing.polled, nothing.failed, nothing.lag_p95) == (0, 0, None)

    await _count(pool, account.id, done=20, failed=1, lag_ms=40)
    await queue.add_many(TaskType.POLLING_CARDDATA, account.id, [(1, 0), (2, 2**50)])
    figures = await reader.read()
    await queue.close()
    assert (figures.polled, figures.failed) == (20, 1)
    assert figures.lag_p95 is not None
    assert 40 <= figures.lag_p95.total_seconds() * 1000 < 60
    assert (figures.cards, figures.waiting, figures.due) == (0, 2, 1)
    assert figures.polled_per_s > 0
