"""The figures of one run, apart from those of the runs before it."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cli.up_carriers import LONE_CARRIER, choose_carriers
from junhong_cmp.cli.up_demo import ensure_account
from junhong_cmp.cli.up_figures import FigureReader
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.hold_notice import post_hold
from junhong_cmp.polling.lag import BUCKETS, lag_bucket
from junhong_cmp.polling.pause_store import pause_polling
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
    account = await ensure_account(pool, LONE_CARRIER, "")
    queue = PollingQueueManager(redis)
    reader = FigureReader(pool, redis, queue, [account])
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
    assert figures.recent_lag_p95 == figures.accounts[0].recent_lag_p95 == figures.lag_p95
    assert (figures.cards, figures.waiting, figures.due) == (0, 2, 1)
    assert figures.polled_per_s > 0


async def test_a_hold_of_the_claims_is_a_figure_too(pool: Pool, redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    reader = FigureReader(pool, redis, queue, [])
    await reader.open()
    assert (await reader.read()).claims_held is None
    await post_hold(redis, timedelta(seconds=75))
    held = (await reader.read()).claims_held
    await queue.close()
    assert held is not None
    assert timedelta(seconds=60) < held <= timedelta(seconds=75)


async def _two(pool: Pool) -> list[CarrierAccount]:
    return [await ensure_account(pool, each, "") for each in choose_carriers("unicom,ctcc", None, None)]


async def test_accounts_are_told_apart_and_add_up(pool: Pool, redis: Redis) -> None:
    unicom, ctcc = await _two(pool)
    queue = PollingQueueManager(redis)
    reader = FigureReader(pool, redis, queue, [unicom, ctcc])
    await reader.open()
    await _count(pool, unicom.id, done=3, failed=1, lag_ms=10_000)
    await _count(pool, ctcc.id, done=5, lag_ms=40)
    figures = await reader.read()
    await queue.close()
    assert [(each.account, each.driver) for each in figures.accounts] == [
        ("demo-unicom", "unicom"),
        ("demo-ctcc", "ctcc"),
    ]
    assert [(each.polled, each.failed) for each in figures.accounts] == [(3, 1), (5, 0)]
    assert (figures.polled, figures.failed) == (8, 1)
    slow, fast = (each.lag_p95 for each in figures.accounts)
    assert slow is not None
    assert fast is not None
    assert fast < timedelta(seconds=1) < slow == figures.lag_p95


async def test_a_pause_of_this_run_is_told_whether_it_is_over_or_not(pool: Pool, redis: Redis) -> None:
    unicom, ctcc = await _two(pool)
    now = datetime.now(UTC)
    async with pool.acquire() as conn:
        await pause_account(conn, ctcc.id, now - timedelta(seconds=5), "throttled")
    queue = PollingQueueManager(redis)
    reader = FigureReader(pool, redis, queue, [unicom, ctcc])
    await reader.open()
    assert [each.pause for each in (await reader.read()).accounts] == [None, None]

    async with pool.acquire() as conn:
        await pause_account(conn, unicom.id, now + timedelta(hours=1), "maintenance")
    paused, free = (await reader.read()).accounts
    assert paused.paused
    assert paused.pause is not None
    assert (paused.pause.reason, paused.pause.text) == ("maintenance", "运营商维护")
    assert not free.paused
    over = (await reader.read(as_of=now + timedelta(hours=2))).accounts[0]
    assert not over.paused
    assert over.pause == paused.pause

    async with pool.acquire() as conn:
        await pause_polling(conn, unicom.id, None, None, "对账")
    by_hand = (await reader.read(as_of=now + timedelta(days=9999))).accounts[0]
    await queue.close()
    assert by_hand.paused
    assert by_hand.pause is not None
    assert (by_hand.pause.text, by_hand.pause.until) == ("人工暂停：对账", None)
