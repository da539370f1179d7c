from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.polling.due import FirstDue, PollRule, backoff_delay, next_due, phase_point_after
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

CARD_IDS = st.integers(1, 2**62)
INTERVALS = st.integers(1_000, 30 * 24 * 3600 * 1000)
NOWS = st.integers(1_600_000_000_000, 2_500_000_000_000)
JITTERS = st.floats(0, 0.45)
TYPES = st.sampled_from(POLLING_TASK_TYPES)


def rule(interval_ms: int, jitter: float = 0.0) -> PollRule:
    return PollRule(timedelta(milliseconds=interval_ms), jitter)


@given(CARD_IDS, TYPES, INTERVALS, NOWS)
def test_the_next_point_is_within_one_interval(card: int, kind: TaskType, interval: int, now: int) -> None:
    point = phase_point_after(card, kind, interval, now)
    assert now < point <= now + interval
    assert phase_point_after(card, kind, interval, point) == point + interval


@given(CARD_IDS, TYPES, INTERVALS, NOWS, JITTERS)
def test_the_next_due_time_is_ahead_and_near_a_point(
    card: int, kind: TaskType, interval: int, now: int, jitter: float
) -> None:
    due = next_due(card, kind, rule(interval, jitter), now)
    spread = int(interval * jitter)
    assert now < due <= now + interval + 2 * spread
    nearest = phase_point_after(card, kind, interval, due - interval // 2 - 1)
    assert abs(nearest - due) <= spread + 1


@given(CARD_IDS, TYPES, INTERVALS, NOWS, JITTERS, st.integers(2, 30))
def test_each_point_is_served_once_however_early_the_jitter_made_a_poll(
    card: int, kind: TaskType, interval: int, now: int, jitter: float, rounds: int
) -> None:
    begun = at = next_due(card, kind, rule(interval, jitter), now)
    for _ in range(rounds):
        at = next_due(card, kind, rule(interval, jitter), at)
    spread = int(interval * jitter)
    assert abs((at - begun) - rounds * interval) <= 2 * spread


@given(CARD_IDS, TYPES, INTERVALS, NOWS, JITTERS, st.integers(0, 7 * 24 * 3600))
def test_the_gap_of_the_carrier_is_kept(
    card: int, kind: TaskType, interval: int, now: int, jitter: float, gap_s: int
) -> None:
    gap = timedelta(seconds=gap_s)
    assert next_due(card, kind, rule(interval, jitter), now, min_gap=gap) >= now + gap_s * 1000


@given(CARD_IDS, TYPES, INTERVALS, NOWS, st.integers(1, 40))
def test_back_off_multiplies_the_interval_and_keeps_the_phase(
    card: int, kind: TaskType, interval: int, now: int, failures: int
) -> None:
    cap = timedelta(days=3650)
    delay = backoff_delay(rule(interval), failures, cap)
    due = next_due(card, kind, rule(interval), now, delay=delay)
    assert due - now > delay // timedelta(milliseconds=1)
    assert (due - phase_point_after(card, kind, interval, now)) % interval == 0


def test_back_off_doubles_and_is_capped_but_never_below_the_interval() -> None:
    hour = PollRule(timedelta(hours=1))
    waits = [backoff_delay(hour, n, timedelta(hours=6)) for n in range(7)]
    assert [wait / timedelta(hours=1) for wait in waits] == [0, 0, 1, 3, 5, 5, 5]
    assert backoff_delay(PollRule(timedelta(days=1)), 9, timedelta(hours=6)) == timedelta()


@given(CARD_IDS, TYPES, INTERVALS, NOWS, st.one_of(st.none(), st.integers(0, 10**9)))
def test_the_first_due_time_is_the_same_after_a_restart(
    card: int, kind: TaskType, interval: int, now: int, age: int | None
) -> None:
    last = None if age is None else now - age
    due = FirstDue(kind, rule(interval, 0.1), timedelta(hours=6)).of(card, now, last)
    assert due == FirstDue(kind, rule(interval, 0.1), timedelta(hours=6)).of(card, now, last)
    assert due == phase_point_after(card, kind, interval, due - 1)
    assert due <= now + interval
    if last is not None:
        assert due > last


def test_jitter_is_symmetric_and_fine_grained() -> None:
    hour = rule(3_600_000, 0.1)
    now = 1_700_000_000_000
    point = phase_point_after(1, TaskType.POLLING_CARDDATA, 3_600_000, now + 360_000)
    offsets = [next_due(1, TaskType.POLLING_CARDDATA, hour, now) - point for _ in range(3000)]
    assert abs(sum(offsets) / len(offsets)) < 20_000
    assert len(set(offsets)) > 2900
    assert max(map(abs, offsets)) <= 360_000


def test_a_fleet_of_cards_spreads_evenly_over_its_interval() -> None:
    now, buckets = 1_700_000_000_000, [0] * 60
    for card in range(6000):
        due = FirstDue(TaskType.POLLING_CARDDATA, rule(3_600_000), timedelta()).of(card + 1, now)
        buckets[(due - now - 1) // 60_000] += 1
    assert min(buckets) > 60
    assert max(buckets) < 140
