"""What was polled lately."""

from dataclasses import replace
from datetime import timedelta

from tests.waiting import FakeClock

from junhong_cmp.cli.up_recent import NOTHING, RecentPolls
from junhong_cmp.polling.lag import BUCKETS, lag_bucket
from junhong_cmp.polling.stats_store import PollTotals

MINUTE = timedelta(minutes=1)


def polled(*, slow: int, fast: int) -> PollTotals:
    """Return the counts of a run that polled so many cards 100 s and 40 ms late."""
    histogram = [0] * BUCKETS
    histogram[lag_bucket(100_000)], histogram[lag_bucket(40)] = slow, fast
    return replace(NOTHING, done=slow + fast, lag_histogram=histogram)


def test_a_lag_that_is_over_is_forgotten_after_a_minute(clock: FakeClock) -> None:
    recent = RecentPolls(MINUTE, clock.monotonic)
    clock.advance(1)
    recent.note(polled(slow=100, fast=0))
    assert recent.polls.lag_p95 is not None
    assert recent.polls.lag_p95 > MINUTE
    for second in range(60):
        clock.advance(1)
        recent.note(polled(slow=100, fast=10 * second))
    clock.advance(1)
    recent.note(polled(slow=100, fast=600))
    assert recent.polls.lag_p95 is not None
    assert recent.polls.lag_p95 < timedelta(seconds=1)
    assert recent.polls.done == 600


def test_without_polls_in_the_span_there_is_no_lag(clock: FakeClock) -> None:
    recent = RecentPolls(MINUTE, clock.monotonic)
    for _ in range(62):
        clock.advance(1)
        recent.note(polled(slow=3, fast=0))
    assert (recent.polls.lag_p95, recent.per_s) == (None, 0.0)


def test_the_rate_is_that_of_the_span(clock: FakeClock) -> None:
    recent = RecentPolls(timedelta(seconds=10), clock.monotonic)
    recent.note(polled(slow=0, fast=5))
    assert recent.per_s == 0.0, "no time has passed"
    for second in range(1, 31):
        clock.advance(1)
        recent.note(polled(slow=0, fast=5 + 20 * second))
    assert recent.per_s == 20.0
