from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cards.usage import (
    MAX_RATE_KB_PER_S,
    START_NOISE,
    BillingTerms,
    CycleId,
    UsageAnomaly,
    UsageChange,
    UsageState,
    apply_reading,
    billing_cycle,
    cycle_start,
)

SHANGHAI = ZoneInfo("Asia/Shanghai")
TERMS = BillingTerms(1, SHANGHAI)


def at(day: int, hour: int = 12, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=SHANGHAI)


def read(*readings: tuple[int, datetime], state: UsageState | None = None) -> list[UsageChange]:
    changes: list[UsageChange] = []
    state = state or UsageState()
    for used_kb, taken_at in readings:
        changes.append(apply_reading(state, used_kb, taken_at, TERMS))
        state = changes[-1].state
    return changes


def growth(*readings: tuple[int, datetime]) -> list[int]:
    return [change.delta_kb for change in read(*readings)]


class TestBillingCycle:
    @pytest.mark.parametrize(
        ("local", "billing_day", "cycle"),
        [
            ("2026-03-01T00:00", 1, "2026-03-01"),
            ("2026-02-28T23:59", 1, "2026-02-01"),
            ("2026-03-26T23:59", 27, "2026-02-27"),
            ("2026-03-27T00:00", 27, "2026-03-27"),
            ("2026-01-05T08:00", 27, "2025-12-27"),
            ("2026-02-28T00:00", 31, "2026-02-28"),
            ("2028-02-28T23:00", 31, "2028-01-31"),
            ("2028-02-29T00:00", 31, "2028-02-29"),
        ],
    )
    def test_examples(self, local: str, billing_day: int, cycle: str) -> None:
        assert (
            billing_cycle(datetime.fromisoformat(local).replace(tzinfo=SHANGHAI), billing_day, SHANGHAI)
            == cycle
        )

    def test_the_accounts_time_zone_decides(self) -> None:
        instant = datetime(2026, 2, 28, 16, tzinfo=UTC)
        assert billing_cycle(instant, 1, SHANGHAI) == "2026-03-01"
        assert billing_cycle(instant, 1, ZoneInfo("UTC")) == "2026-02-01"

    def test_the_start_is_local_midnight(self) -> None:
        assert cycle_start(CycleId("2026-03-01"), SHANGHAI) == datetime(2026, 2, 28, 16, tzinfo=UTC)

    @given(
        hours=st.integers(0, 12 * 366 * 24),
        billing_day=st.integers(1, 31),
        zone=st.sampled_from(
            ["Asia/Shanghai", "UTC", "America/New_York", "America/Sao_Paulo", "Asia/Beirut"]
        ),
    )
    def test_walking_back_day_by_day_finds_the_same_start(
        self, hours: int, billing_day: int, zone: str
    ) -> None:
        instant = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
        day = instant.astimezone(ZoneInfo(zone)).date()
        while not _begins_a_cycle(day, billing_day):
            day -= timedelta(days=1)
        assert billing_cycle(instant, billing_day, ZoneInfo(zone)) == day.isoformat()


def _begins_a_cycle(day: date, billing_day: int) -> bool:
    is_last_of_month = (day + timedelta(days=1)).month != day.month
    return day.day == billing_day or (is_last_of_month and day.day < billing_day)


class TestSameCycle:
    def test_the_first_reading_is_the_baseline(self) -> None:
        (change,) = read((5000, at(10)))
        assert change == UsageChange(UsageState(CycleId("2026-03-01"), 5000, 5000, at(10)))

    def test_growth_is_the_difference(self) -> None:
        assert growth((5000, at(10)), (5300, at(11)), (5300, at(12)), (5301, at(13))) == [0, 300, 0, 1]

    def test_a_dip_that_recovers_grows_by_the_excess_only(self) -> None:
        changes = read((5000, at(10)), (0, at(11)), (5010, at(12)))
        assert [change.delta_kb for change in changes] == [0, 0, 10]
        assert [change.anomaly for change in changes] == [None, UsageAnomaly.ROLLBACK, None]
        assert [change.state.cycle_used_kb for change in changes] == [5000, 5000, 5010]
        assert changes[1].state.last_reading_kb == 0

    def test_a_lasting_dip_is_reported_once_and_again_when_it_deepens(self) -> None:
        changes = read((5000, at(10)), (70, at(11)), (70, at(12)), (80, at(13)), (20, at(14)))
        rollback = UsageAnomaly.ROLLBACK
        assert [change.anomaly for change in changes] == [None, rollback, None, None, rollback]

    def test_a_low_reading_in_the_first_three_days_is_normal(self) -> None:
        assert [change.anomaly for change in read((500, at(2)), (0, at(3, 23)), (500, at(4)))] == [None] * 3
        assert read((500, at(2)), (0, at(4, 1)))[1].anomaly is UsageAnomaly.ROLLBACK

    def test_an_older_reading_says_nothing(self) -> None:
        first = read((5000, at(10)))[0].state
        assert apply_reading(first, 9000, at(10, 11), TERMS) == UsageChange(first)

    def test_a_negative_reading_is_refused(self) -> None:
        with pytest.raises(ValueError, match="-1"):
            read((-1, at(10)))


class TestNewCycle:
    def test_the_old_cycle_is_closed_and_the_reading_is_the_growth(self) -> None:
        change = read((5000, at(28)), (30, at(1, 3, month=4)))[1]
        assert change.delta_kb == 30
        assert change.closed == ("2026-03-01", 5000)
        assert change.state == UsageState(CycleId("2026-04-01"), 30, 30, at(1, 3, month=4), 5000)

    def test_a_stale_total_at_the_start_is_not_usage_of_the_new_cycle(self) -> None:
        changes = read(
            (5000, at(31)), (5000, at(1, 1, month=4)), (5000, at(2, 1, month=4)), (7, at(2, 2, month=4))
        )
        assert [change.delta_kb for change in changes] == [0, 0, 0, 7]
        assert [change.closed for change in changes] == [None, None, None, ("2026-03-01", 5000)]

    def test_a_stale_total_after_the_reset_is_not_growth(self) -> None:
        readings = [
            (5000, at(31)),
            (7, at(1, 1, month=4)),
            (5000, at(1, 2, month=4)),
            (5020, at(1, 3, month=4)),
        ]
        assert growth(*readings, (9, at(1, 4, month=4))) == [0, 7, 0, 0, 2]

    def test_a_low_reading_before_the_reset_does_not_count_the_old_total_again(self) -> None:
        readings = [(5000, at(31)), (0, at(1, 1, month=4)), (5000, at(1, 2, month=4)), (3, at(2, 4, month=4))]
        assert growth(*readings) == [0, 0, 0, 3]

    def test_true_growth_to_the_old_total_is_counted_beyond_it_or_later(self) -> None:
        start = [(5000, at(31)), (7, at(1, 1, month=4)), (5000, at(2, 2, month=4))]
        assert growth(*start, (6000, at(2, 9, month=4))) == [0, 7, 0, 5993]
        assert growth(*start, (5001, at(4, 9, month=4))) == [0, 7, 0, 4994]

    def test_late_usage_before_the_reset_belongs_to_the_old_cycle(self) -> None:
        change = read((5000, at(31)), (5020, at(1, 1, month=4)), (7, at(1, 9, month=4)))[2]
        assert change.closed == ("2026-03-01", 5020)
        assert change.delta_kb == 27
        assert change.state.cycle_used_kb == 7

    def test_a_counter_that_never_drops_was_the_new_cycles_own(self) -> None:
        changes = read((100, at(31)), (150, at(2, month=4)), (190, at(5, month=4)))
        assert [change.delta_kb for change in changes] == [0, 0, 190]
        assert changes[2].closed == ("2026-03-01", 100)

    def test_an_unused_card_opens_its_cycle_at_once(self) -> None:
        change = read((0, at(31)), (0, at(1, 1, month=4)))[1]
        assert change.closed == ("2026-03-01", 0)
        assert change.state.cycle == "2026-04-01"

    def test_after_silent_months_only_the_reading_counts(self) -> None:
        change = read((5000, at(10)), (800, at(10, month=7)))[1]
        assert (change.delta_kb, change.closed) == (800, ("2026-03-01", 5000))


class TestLateReadings:
    def test_a_total_told_after_its_cycle_ended_belongs_to_it(self) -> None:
        changes = read((5000, at(31)), (7, at(1, 1, month=4)), (5600, at(31, 23)), (9, at(1, 5, month=4)))
        assert [change.delta_kb for change in changes] == [0, 7, 600, 2]
        assert [change.closed for change in changes[1:]] == [("2026-03-01", 5000), ("2026-03-01", 5600), None]
        assert changes[2].state == UsageState(CycleId("2026-04-01"), 7, 7, at(1, 1, month=4), 5600)

    def test_what_a_counter_held_over_had_grown_by_is_not_counted_again(self) -> None:
        held = [(5000, at(31)), (5650, at(1, 1, month=4))]
        changes = read(*held, (5600, at(31, 23)), (7, at(1, 9, month=4)))
        assert [change.delta_kb for change in changes] == [0, 0, 600, 50 + 7]
        assert changes[2].state == UsageState(CycleId("2026-03-01"), 5600, 5650, at(1, 1, month=4))
        assert changes[3].closed == ("2026-03-01", 5650)

    def test_no_more_than_is_known_says_nothing(self) -> None:
        state = read((5000, at(31)), (7, at(1, 1, month=4)))[1].state
        assert apply_reading(state, 5000, at(31, 23), TERMS) == UsageChange(state)

    def test_of_a_cycle_that_was_never_read_or_is_long_over_nothing_is_known(self) -> None:
        state = read((5000, at(10)), (800, at(10, month=7)))[1].state
        assert apply_reading(state, 9000, at(30, month=6), TERMS) == UsageChange(state)
        assert apply_reading(state, 9000, at(31), TERMS) == UsageChange(state)
        first = read((7, at(1, month=4)))[0].state
        assert apply_reading(first, 9000, at(31), TERMS) == UsageChange(first)

    @pytest.mark.parametrize(
        ("used_kb", "anomaly"), [(5_000_000, UsageAnomaly.UNIT), (10**13, UsageAnomaly.JUMP)]
    )
    def test_what_cannot_be_right_is_not_taken_late_either(self, used_kb: int, anomaly: UsageAnomaly) -> None:
        state = read((5000, at(31)), (7, at(1, 1, month=4)))[1].state
        assert apply_reading(state, used_kb, at(31, 23), TERMS) == UsageChange(state, anomaly=anomaly)

    @given(
        rate_kb=st.integers(1, 5000),
        days=st.lists(
            st.lists(st.tuples(st.integers(0, 23), st.booleans()), min_size=1, max_size=4),
            min_size=60,
            max_size=70,
        ),
    )
    def test_readings_of_now_and_of_yesterday_may_alternate(
        self, rate_kb: int, days: list[list[tuple[int, bool]]]
    ) -> None:
        """The model: whatever order a counter is told of in, a cycle is worth the highest told of it."""
        start = datetime(2026, 3, 8, tzinfo=SHANGHAI)
        readings: list[tuple[int, datetime]] = []
        for number, polls in enumerate(days):
            midnight = start + timedelta(days=number)
            for hour, is_of_yesterday in sorted(polls):
                told_at = (
                    midnight - timedelta(hours=1) if is_of_yesterday else midnight + timedelta(hours=hour)
                )
                counted_h = (told_at - told_at.replace(day=1, hour=0)) // timedelta(hours=1)
                readings.append((counted_h * rate_kb, told_at))
        highest: dict[str, int] = {}
        totals: dict[str, int] = {}
        for (used, told_at), change in zip(readings, read(*readings), strict=True):
            cycle = billing_cycle(told_at, 1, SHANGHAI)
            highest[cycle] = max(highest.get(cycle, 0), used)
            totals |= dict([change.closed]) if change.closed else {}
            assert change.state.cycle is not None
            totals[change.state.cycle] = change.state.cycle_used_kb
            assert totals == highest
            assert change.anomaly is None


class TestImpossibleReadings:
    def test_more_than_the_line_can_carry_is_not_taken(self) -> None:
        state = read((5000, at(10)))[0].state
        absurd = 5001 + MAX_RATE_KB_PER_S * 3600
        assert apply_reading(state, absurd, at(10, 13), TERMS) == UsageChange(
            state, anomaly=UsageAnomaly.JUMP
        )
        assert apply_reading(state, absurd - 1, at(10, 13), TERMS).delta_kb == absurd - 5001

    def test_it_is_taken_once_it_has_become_possible(self) -> None:
        absurd = 5001 + MAX_RATE_KB_PER_S * 3600
        changes = read((5000, at(10)), (absurd, at(10, 13)), (absurd, at(10, 14)))
        assert [change.delta_kb for change in changes] == [0, 0, absurd - 5000]

    @pytest.mark.parametrize("factor", [1000, 1024])
    def test_another_unit_is_recognised(self, factor: int) -> None:
        state = read((5000, at(10)))[0].state
        change = apply_reading(state, 5003 * factor, at(12), TERMS)
        assert change == UsageChange(state, anomaly=UsageAnomaly.UNIT)


READINGS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 24 * 75)), min_size=1, max_size=25
)  # kB in a range without absurd jumps; hours, spanning three cycles


@given(READINGS)
def test_totals_always_add_up(raw: list[tuple[int, int]]) -> None:
    """Growth summed over all readings = the totals of all cycles less the baseline."""
    start = datetime(2026, 2, 20, tzinfo=SHANGHAI)
    changes = read(*((used, start + timedelta(hours=hour)) for used, hour in raw))
    totals: Counter[str] = Counter()
    for change in changes:
        assert change.delta_kb >= 0
        if change.closed:
            totals[change.closed[0]] = change.closed[1]
        assert change.state.cycle is not None
        totals[change.state.cycle] = change.state.cycle_used_kb
    assert sum(change.delta_kb for change in changes) == totals.total() - raw[0][0]


@given(READINGS)
def test_applying_a_reading_again_adds_nothing(raw: list[tuple[int, int]]) -> None:
    start = datetime(2026, 2, 20, tzinfo=SHANGHAI)
    state = UsageState()
    for used, hour in raw:
        taken_at = start + timedelta(hours=hour)
        state = apply_reading(state, used, taken_at, TERMS).state
        again = apply_reading(state, used, taken_at, TERMS)
        if state.last_reading_at == taken_at:
            assert (again.state, again.delta_kb, again.closed) == (state, 0, None)


@given(READINGS)
def test_away_from_the_noisy_start_a_cycle_is_worth_its_highest_reading(raw: list[tuple[int, int]]) -> None:
    """The brute-force model: per cycle the maximum of what was read in time order."""
    start = datetime(2026, 2, 20, tzinfo=SHANGHAI)
    highest: dict[str, int] = {}
    kept: list[tuple[int, datetime]] = []
    for used, hour in sorted(raw, key=lambda reading: reading[1]):
        taken_at = start + timedelta(hours=hour)
        cycle = billing_cycle(taken_at, 1, SHANGHAI)
        if taken_at - cycle_start(cycle, SHANGHAI) < START_NOISE:
            continue
        kept.append((used, taken_at))
        highest[cycle] = max(highest.get(cycle, 0), used)
    totals: dict[str, int] = {}
    for change in read(*kept):
        if change.closed:
            assert totals[change.closed[0]] == change.closed[1]
        assert change.state.cycle is not None
        totals[change.state.cycle] = change.state.cycle_used_kb
    assert totals == highest
