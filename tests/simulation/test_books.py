"""The books add up as one would by hand, and nothing that PostgreSQL gets wrong escapes them."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, date, datetime

import pytest
from tests.simulation.books import CardTotals, mismatches, overlaps, totals_of
from tests.simulation.carrier import Answer, Call
from tests.simulation.plan import Habit

CARD = "89860400000000000010"
OLD, NEW = date(2026, 2, 1), date(2026, 3, 1)
FRIDAY, SATURDAY, SUNDAY = date(2026, 2, 27), date(2026, 2, 28), NEW


def told(kb: int, day: date, cycle: date = OLD, habit: Habit = Habit.PLAIN) -> Answer:
    return Answer(CARD, kb, day, cycle, habit)


LOG = [
    told(5_000, FRIDAY),
    told(5_100, FRIDAY),
    told(0, FRIDAY, habit=Habit.DIP),
    told(5_150_000, FRIDAY, habit=Habit.UNIT),
    told(5_110, SATURDAY),
    told(5_130, SUNDAY, habit=Habit.LATE),
    told(7, SUNDAY, NEW),
    told(5_999, SUNDAY, habit=Habit.RELAPSE),
    told(5_170, SATURDAY),
    told(9, SUNDAY, NEW),
]


def test_totals_follow_from_the_log() -> None:
    (totals,) = totals_of(LOG).values()
    assert totals.marks == {OLD: 5_170, NEW: 9}
    assert totals.days == Counter({FRIDAY: 100, SATURDAY: 10 + 40, SUNDAY: 20 + 9})
    assert totals.closed == {OLD}
    assert totals.anomalies == {"unit"}


def _count_a_day_twice(totals: CardTotals) -> None:
    totals.days[SATURDAY] *= 2


def _count_for_the_day_before(totals: CardTotals) -> None:
    totals.days[FRIDAY] += totals.days.pop(SATURDAY)


def _lose_late_usage(totals: CardTotals) -> None:
    totals.marks[OLD] -= 40


def _take_the_last_for_the_highest(totals: CardTotals) -> None:
    totals.marks[NEW] = 7


def _leave_a_cycle_open(totals: CardTotals) -> None:
    totals.closed.clear()


def _believe_a_lie(totals: CardTotals) -> None:
    totals.anomalies.clear()


@pytest.mark.parametrize(
    "spoil",
    [
        _count_a_day_twice,
        _count_for_the_day_before,
        _lose_late_usage,
        _take_the_last_for_the_highest,
        _leave_a_cycle_open,
        _believe_a_lie,
    ],
)
def test_a_total_that_is_off_is_a_mismatch(spoil: Callable[[CardTotals], None]) -> None:
    expected = totals_of(LOG)
    recorded = deepcopy(expected)
    assert not mismatches(expected, recorded)
    spoil(recorded[CARD])
    assert set(mismatches(expected, recorded)) == {CARD}


def test_a_card_on_one_side_only_is_a_mismatch() -> None:
    totals = totals_of(LOG)
    assert set(mismatches(totals, {})) == set(mismatches({}, totals)) == {CARD}


def test_calls_overlap_only_of_one_kind_and_card() -> None:
    def call(op: str, iccid: str, begin_s: float, end_s: float) -> Call:
        return Call(op, iccid, begin_s, end_s, datetime(2026, 3, 1, tzinfo=UTC), "ok")

    first = call("usage", CARD, 1.0, 2.0)
    apart = [
        call("usage", CARD, 2.0, 3.0),
        call("status", CARD, 1.5, 2.5),
        call("usage", CARD[::-1], 1.5, 2.5),
    ]
    assert not overlaps([first, *apart])
    same_card = call("usage", CARD[:19], 1.9, 1.95)
    assert overlaps([same_card, first]) == [(first, same_card)]
