from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowd import CROWDED, CYCLE, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.cycle_closing import BEFORE_ALL, CycleOfCard, close_cycles, first_open_cycle
from junhong_cmp.cards.usage import (
    START_NOISE,
    BillingTerms,
    CycleId,
    billing_cycle,
    cycle_start,
    previous_cycle,
)

SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("now", "billing_day", "oldest"),
    [
        ("2026-03-03T15:59", 1, "2026-02-01"),  # the third day of the new cycle, there
        ("2026-03-03T16:00", 1, "2026-03-01"),
        ("2026-03-29T15:59", 27, "2026-02-27"),
        ("2026-03-29T16:00", 27, "2026-03-27"),
        ("2026-03-01T12:00", 31, "2026-01-31"),  # February's cycle begins on its last day
    ],
)
def test_a_cycle_is_over_when_its_noisy_days_are(now: str, billing_day: int, oldest: str) -> None:
    instant = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert first_open_cycle(instant, BillingTerms(billing_day, SHANGHAI)) == oldest


@pytest.mark.parametrize(
    ("now", "oldest"), [("2026-03-04T15:59", "2026-02-01"), ("2026-03-04T16:00", "2026-03-01")]
)
def test_a_late_carriers_noisy_days_begin_so_much_later(now: str, oldest: str) -> None:
    instant = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert first_open_cycle(instant, BillingTerms(1, SHANGHAI), timedelta(days=1)) == oldest


@given(
    st.integers(1_577_836_800, 2_051_222_400).map(lambda unix_s: datetime.fromtimestamp(unix_s, UTC)),
    st.integers(1, 31),
    st.sampled_from(["Asia/Shanghai", "America/New_York", "Asia/Kathmandu"]),
)
def test_it_never_reaches_into_what_readings_may_still_add_to(
    now: datetime, billing_day: int, zone: str
) -> None:
    terms = BillingTerms(billing_day, ZoneInfo(zone))
    current = billing_cycle(now, billing_day, terms.tz)
    oldest = first_open_cycle(now, terms)
    assert oldest in (current, previous_cycle(current, terms))
    assert previous_cycle(current, terms) < current
    assert cycle_start(oldest, terms.tz) <= now - START_NOISE + timedelta(hours=1)  # of summer time


@whatever_is_known
async def test_a_chunk_goes_through_no_more_cycles_than_it_closes(
    postgres_dsn: str, statistics: Statistics
) -> None:
    async with watched_crowd(postgres_dsn, statistics, "card_usage_cycle") as watch:
        after = BEFORE_ALL
        for first in (2, 202, 402):
            async with watch.pool.acquire() as conn, conn.transaction():
                closed = await close_cycles(conn, CROWDED, CycleId(CYCLE), 100, after)
            watch.assert_frugal(250)
            assert closed == [
                CycleOfCard(CycleId("2026-02-01"), card_id) for card_id in range(first, first + 200, 2)
            ]
            after = closed[-1]
