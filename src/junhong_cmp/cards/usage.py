"""From readings to usage: billing cycles, growth, and readings that cannot be right. Pure.

A reading is the carrier's counter for the billing cycle so far, in whole KB. Carriers are
noisy: counters dip and recover, and at a cycle's start go on showing the old cycle's total
for up to three days. The rules, in the order they apply:

- A reading older than the last one says nothing, unless it is of the cycle before that one's and
  shows more than is known of it: then it is late usage of that cycle. (A carrier may tell a month's
  total only after the next month has begun.)
- The first reading of a card is its baseline: the cycle stands there, no growth is counted. It is no baseline
  if it is more than the line could have carried since the cycle began.
- In the first days of a cycle whose counter was reset already, a reading of about the old total is a stale
  copy and says nothing. Should it be true growth, the next one beyond that, or after those days, counts it.
- More than the line could have carried since the last reading, or about 1 000 times the
  high-water mark (another unit), is an anomaly and is not taken. If it persists, it is
  taken once enough time has passed to make it possible.
- Same cycle: growth is what exceeds the high-water mark; a lower reading keeps the mark.
- New cycle, but no lower than the old mark within the first days: the carrier may not have
  reset its counter, so the old cycle stays open. When the counter then drops, what it had
  grown meanwhile was late usage of the old cycle; otherwise it was the new one's own.
- New cycle: the old one is closed, growth is the reading itself.
"""

import calendar
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Final, NamedTuple, NewType
from zoneinfo import ZoneInfo

CycleId = NewType("CycleId", str)
"""A billing cycle by its first local day, ``YYYY-MM-DD``; ids sort by time."""

START_NOISE: Final = timedelta(days=3)
MAX_RATE_KB_PER_S: Final = 125_000
"""One Gbit/s: no card is faster for long."""

_SHORTEST_SPAN: Final = timedelta(minutes=1)
_STALE_SHARES: Final = (0.95, 1.1)
_UNIT_RATIOS: Final = (950.0, 1075.0)
_UNIT_FLOOR_KB: Final = 1024


class UsageAnomaly(StrEnum):
    """What is wrong with a reading."""

    ROLLBACK = "rollback"
    JUMP = "jump"
    UNIT = "unit"


class BillingTerms(NamedTuple):
    """When an account's billing cycles begin: at 00:00 local time of a day of the month."""

    billing_day: int
    tz: ZoneInfo


class UsageState(NamedTuple):
    """A card's usage: the open cycle and its high-water mark, the last reading taken, the total before."""

    cycle: CycleId | None = None
    cycle_used_kb: int = 0
    last_reading_kb: int | None = None
    last_reading_at: datetime | None = None
    previous_kb: int | None = None


class UsageChange(NamedTuple):
    """What one reading does: the new state, growth, the cycle it closed with its total, an anomaly."""

    state: UsageState
    delta_kb: int = 0
    closed: tuple[CycleId, int] | None = None
    anomaly: UsageAnomaly | None = None


def billing_cycle(at: datetime, billing_day: int, tz: ZoneInfo) -> CycleId:
    """Return the cycle an instant belongs to; in a short month the cycle begins on its last day."""
    day = at.astimezone(tz).date()
    first = _billing_date(day.year, day.month, billing_day)
    if day < first:
        before = day.replace(day=1) - timedelta(days=1)
        first = _billing_date(before.year, before.month, billing_day)
    return CycleId(first.isoformat())


def cycle_start(cycle: CycleId, tz: ZoneInfo) -> datetime:
    """Return the instant a cycle begins."""
    return datetime.combine(date.fromisoformat(cycle), time(), tz)


def previous_cycle(cycle: CycleId, terms: BillingTerms) -> CycleId:
    """Return the cycle before."""
    return billing_cycle(cycle_start(cycle, terms.tz) - timedelta(hours=1), terms.billing_day, terms.tz)


def apply_reading(state: UsageState, used_kb: int, at: datetime, terms: BillingTerms) -> UsageChange:
    """Return what a reading of ``used_kb``, taken by the carrier at ``at``, does to a card.

    Raises:
        ValueError: when the reading is negative.

    """
    if used_kb < 0:
        raise ValueError(used_kb)
    if state.last_reading_at is not None and at < state.last_reading_at:
        return _late_reading(state, used_kb, at, terms)
    cycle = billing_cycle(at, terms.billing_day, terms.tz)
    started = cycle_start(cycle, terms.tz)
    if state.cycle is None or state.last_reading_at is None:
        anomaly = _impossible(UsageState(), used_kb, at, since=started)
        first = UsageState(cycle, used_kb, used_kb, at)
        return UsageChange(first if anomaly is None else state, anomaly=anomaly)
    is_early = at - started < START_NOISE
    is_stale = is_early and cycle == state.cycle and _may_be_stale(state, used_kb)
    anomaly = _impossible(state, used_kb, at, since=max(started, state.last_reading_at))
    if is_stale or anomaly is not None:
        return UsageChange(state, anomaly=None if is_stale else anomaly)
    if cycle == state.cycle:
        return _within_cycle(state, used_kb, at, is_early=is_early)
    if is_early and 0 < _last_of_old_cycle(state, started) <= used_kb:
        return UsageChange(_seen(state, used_kb, at))
    late_kb = _late_growth(state, used_kb, cycle, terms)
    total_kb = state.cycle_used_kb + late_kb
    # After silent cycles nothing is known of the one before.
    previous_kb = total_kb if state.cycle == previous_cycle(cycle, terms) else None
    after = UsageState(cycle, used_kb, used_kb, at, previous_kb)
    return UsageChange(after, delta_kb=used_kb + late_kb, closed=(state.cycle, total_kb))


def _late_reading(state: UsageState, used_kb: int, at: datetime, terms: BillingTerms) -> UsageChange:
    """Return what a reading older than the last one adds to the cycle before that one's."""
    cycle = billing_cycle(at, terms.billing_day, terms.tz)
    if state.cycle is None or state.last_reading_at is None:
        return UsageChange(state)
    known_of = {state.cycle: state.cycle_used_kb, previous_cycle(state.cycle, terms): state.previous_kb}
    last_cycle = billing_cycle(state.last_reading_at, terms.billing_day, terms.tz)
    known_kb = known_of.get(cycle) if cycle == previous_cycle(last_cycle, terms) else None
    if known_kb is None or used_kb <= known_kb:
        return UsageChange(state)
    known = UsageState(cycle, known_kb)
    if anomaly := _impossible(known, used_kb, at, since=cycle_start(cycle, terms.tz)):
        return UsageChange(state, anomaly=anomaly)
    last = (state.last_reading_kb, state.last_reading_at)
    if cycle == state.cycle:
        after = UsageState(cycle, used_kb, *last, state.previous_kb)
        return UsageChange(after, delta_kb=used_kb - known_kb)
    after = UsageState(state.cycle, state.cycle_used_kb, *last, used_kb)
    return UsageChange(after, delta_kb=used_kb - known_kb, closed=(cycle, used_kb))


def _within_cycle(state: UsageState, used_kb: int, at: datetime, *, is_early: bool) -> UsageChange:
    growth = used_kb - state.cycle_used_kb
    if growth >= 0:
        return UsageChange(UsageState(state.cycle, used_kb, used_kb, at, state.previous_kb), delta_kb=growth)
    # A dip is reported when it begins or deepens, not for as long as it lasts.
    deepens = state.last_reading_kb is None or used_kb < state.last_reading_kb
    seen = _seen(state, used_kb, at)
    return UsageChange(seen, anomaly=UsageAnomaly.ROLLBACK if deepens and not is_early else None)


def _may_be_stale(state: UsageState, used_kb: int) -> bool:
    """Whether a counter that was reset seems to show about what it had come to before."""
    low_kb, high_kb = (share * (state.previous_kb or 0) for share in _STALE_SHARES)
    return state.cycle_used_kb < low_kb <= used_kb <= high_kb


def _last_of_old_cycle(state: UsageState, started: datetime) -> int:
    """Return the last the old cycle's counter has shown, be it since the new cycle began at ``started``.

    Less than that is a counter that was reset, even if it is above the old mark again.
    """
    is_held = state.last_reading_at is not None and state.last_reading_at >= started
    return max(state.cycle_used_kb, (state.last_reading_kb or 0) if is_held else 0)


def _late_growth(state: UsageState, used_kb: int, cycle: CycleId, terms: BillingTerms) -> int:
    """Return what readings held over in a noisy start had grown by, if that was the old cycle's."""
    held_kb, held_at = state.last_reading_kb or 0, state.last_reading_at
    held_in = None if held_at is None else billing_cycle(held_at, terms.billing_day, terms.tz)
    if held_in in (None, state.cycle) or (held_in == cycle and used_kb >= held_kb):
        return 0  # nothing was held over, or the counter never dropped: it is the new cycle's own
    return max(0, held_kb - state.cycle_used_kb)


def _impossible(state: UsageState, used_kb: int, at: datetime, *, since: datetime) -> UsageAnomaly | None:
    mark = state.cycle_used_kb
    if mark >= _UNIT_FLOOR_KB and _UNIT_RATIOS[0] <= used_kb / mark <= _UNIT_RATIOS[1]:
        return UsageAnomaly.UNIT
    highest = max(mark, state.last_reading_kb or 0)
    seconds = max(at - since, _SHORTEST_SPAN).total_seconds()
    return UsageAnomaly.JUMP if used_kb - highest > MAX_RATE_KB_PER_S * seconds else None


def _seen(state: UsageState, used_kb: int, at: datetime) -> UsageState:
    return state._replace(last_reading_kb=used_kb, last_reading_at=at)


def _billing_date(year: int, month: int, billing_day: int) -> date:
    return date(year, month, min(billing_day, calendar.monthrange(year, month)[1]))
