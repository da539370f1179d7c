"""Usage rules against a carrier simulated hour by hour, and the sequences the field knows.

The model shares no code with the rules: it keeps the carrier's true counter, which is reset late by up to
three days, and adds up what each counter showed at its highest.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from junhong_cmp.cards.usage import BillingTerms, UsageAnomaly, UsageState, apply_reading

START = datetime(2026, 1, 8, tzinfo=UTC)
HOURS = 24 * 75
ZONES = ["Asia/Shanghai", "UTC", "America/Sao_Paulo", "Pacific/Kiritimati"]


@dataclass(frozen=True)
class Carrier:
    """When the carrier's counter is reset, and what the card uses each hour it is awake."""

    billing_day: int
    zone: ZoneInfo
    reset_lag_h: int
    awake: frozenset[int]
    rate_kb: int

    def resets(self) -> set[int]:
        """The hours at which the counter begins anew."""
        days = [START.date() + timedelta(days=number) for number in range(-2, HOURS // 24 + 2)]
        begun = [
            datetime.combine(day, time(), self.zone) for day in days if _begins_a_cycle(day, self.billing_day)
        ]
        return {(start - START) // timedelta(hours=1) + self.reset_lag_h for start in begun}


def _begins_a_cycle(day: date, billing_day: int) -> bool:
    is_last = (day + timedelta(days=1)).month != day.month
    return day.day == billing_day or (is_last and day.day < billing_day)


CARRIERS = st.builds(
    Carrier,
    billing_day=st.sampled_from([1, 15, 27, 28]),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    reset_lag_h=st.integers(0, 70),
    awake=st.frozensets(st.integers(0, HOURS), min_size=20, max_size=300),
    rate_kb=st.integers(1, 5000),
)


def counters(carrier: Carrier) -> list[tuple[int, int]]:
    """The carrier's counter at every hour, with the number of resets before."""
    shown, resets, history = 0, 0, []
    reset_hours = carrier.resets()
    for hour in range(HOURS):
        if hour in reset_hours:
            shown, resets = 0, resets + 1
        shown += carrier.rate_kb if hour in carrier.awake else 0
        history.append((shown, resets))
    return history


@given(
    carrier=CARRIERS,
    polls=st.frozensets(st.integers(0, HOURS - 1), min_size=2, max_size=150),
    dips=st.frozensets(st.integers(0, HOURS - 1), max_size=10),
)
def test_growth_is_what_the_counters_showed_at_their_highest(
    carrier: Carrier, polls: frozenset[int], dips: frozenset[int]
) -> None:
    history = counters(carrier)
    unsettled = {hour - early for hour in carrier.resets() for early in range(1, carrier.reset_lag_h + 1)}
    terms = BillingTerms(carrier.billing_day, carrier.zone)
    state, growth = UsageState(), 0
    highest: dict[int, int] = {}
    baseline: int | None = None
    last: tuple[int, int] | None = None
    for hour in sorted(polls | {0}):  # the baseline is read away from any noisy start
        shown, resets = history[hour]
        if last is not None and resets != last[1]:
            # A counter that has passed the old one again by the first look at it cannot be told apart.
            assume(shown < last[0] or last[0] == 0)
            assume(hour not in unsettled)  # nor one of a cycle nobody looked at, shown in the next
        elif last is not None and last[0] == 0:
            # Nor one that had shown nothing before the new cycle began.
            assume(hour not in unsettled or shown == 0)
        is_settled = last is not None and last[1] == resets and hour not in unsettled
        is_dip = hour in dips and is_settled  # a dip before a late reset looks just like the reset
        reading = shown // 2 if is_dip else shown
        change = apply_reading(state, reading, START + timedelta(hours=hour), terms)
        assert change.anomaly in (None, UsageAnomaly.ROLLBACK)
        state, growth = change.state, growth + change.delta_kb
        if baseline is None:
            baseline = reading
        highest[resets] = max(highest.get(resets, 0), reading)
        last = (highest[resets], resets)
    late_kb = max(0, (state.last_reading_kb or 0) - state.cycle_used_kb)  # told apart at the next reset
    assert growth + late_kb == sum(highest.values()) - (baseline or 0)


@pytest.mark.parametrize(
    ("readings", "growth"),
    [
        ([5000, 0, 5010], 10),
        ([5000, 5000, 5000], 0),
        ([0, 10, 10, 30], 30),
        ([5000, 4000, 3000, 5000], 0),
        ([5000, 0, 0, 0, 5001], 1),
        ([100], 0),
    ],
)
def test_known_sequences_within_a_cycle(readings: list[int], growth: int) -> None:
    terms, state, total = BillingTerms(1, ZoneInfo("Asia/Shanghai")), UsageState(), 0
    for hour, reading in enumerate(readings):
        change = apply_reading(state, reading, datetime(2026, 3, 10, hour, tzinfo=UTC), terms)
        state, total = change.state, total + change.delta_kb
    assert total == growth
    assert state.cycle_used_kb == max(readings)
