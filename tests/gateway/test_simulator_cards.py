from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from junhong_cmp.gateway import simulator_cards
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.simulator_cards import RAW_STATUS, REALNAME_STATUSES, CardBook, expected_usage_kb

NOW = datetime(2026, 3, 15, 4, 30, tzinfo=UTC)
ICCIDS = [f"8986001234567{number:07d}" for number in range(0, 2000, 10)]


def book(*, unknown_rate: float = 0.0, delay: timedelta = timedelta(0)) -> CardBook:
    return CardBook(seed=7, unknown_rate=unknown_rate, operation_delay=delay)


def test_usage_is_the_same_for_ever() -> None:
    """A change of this figure would break every recorded run that is compared with it."""
    assert expected_usage_kb("89860012345678900017", NOW, 7) == 5018400


def test_usage_grows_with_time_and_begins_again_with_the_month() -> None:
    moments = [NOW + timedelta(milliseconds=1500 * step) for step in range(20)]
    readings = [expected_usage_kb(ICCIDS[0], moment, 7) for moment in moments]
    assert all(later > earlier for earlier, later in pairwise(readings))
    month_end_in_china = datetime(2026, 3, 31, 16, tzinfo=UTC)
    assert expected_usage_kb(ICCIDS[0], month_end_in_china, 7) == 0
    assert expected_usage_kb(ICCIDS[0], month_end_in_china - timedelta(seconds=1), 7) > 1_000_000


def test_cards_and_seeds_differ_but_the_two_forms_of_a_card_do_not() -> None:
    assert len({expected_usage_kb(iccid, NOW, 7) for iccid in ICCIDS}) > 20
    assert len({expected_usage_kb(ICCIDS[0], NOW, seed) for seed in range(50)}) > 10
    assert expected_usage_kb(ICCIDS[0], NOW, 7) == expected_usage_kb(ICCIDS[0][:19], NOW, 7)


def test_most_cards_are_active_and_every_state_has_a_raw_word() -> None:
    statuses = [book().status(iccid, NOW) for iccid in ICCIDS]
    assert 0.8 < statuses.count("active") / len(statuses) < 0.97
    assert set(statuses) <= RAW_STATUS.keys()
    assert {book().real_name(iccid) for iccid in ICCIDS} == set(REALNAME_STATUSES)


def test_the_unknown_share_is_always_the_same_cards() -> None:
    unknown = [iccid for iccid in ICCIDS if not book(unknown_rate=0.3).knows(iccid)]
    assert 0.15 < len(unknown) / len(ICCIDS) < 0.45
    assert unknown == [iccid for iccid in ICCIDS if not book(unknown_rate=0.3).knows(iccid)]
    assert all(book().knows(iccid) for iccid in ICCIDS)


def test_an_operation_has_its_effect_when_it_is_done() -> None:
    cards = book(delay=timedelta(seconds=10))
    iccid = next(iccid for iccid in ICCIDS if cards.status(iccid, NOW) == "active")
    assert cards.operate(iccid, "active", "op-0", NOW) is None
    operation = cards.operate(iccid, "suspended", "op-1", NOW)
    assert operation is not None
    assert operation.state(NOW) is OperationState.PENDING
    assert cards.status(iccid, NOW) == "active"
    later = NOW + timedelta(seconds=10)
    assert cards.status(iccid, later) == "suspended"
    assert cards.operate(iccid, "suspended", "op-1", later) is operation
    assert cards.operation("op-1") is operation
    assert cards.operation("op-2") is None


def test_only_the_latest_operations_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator_cards, "_REMEMBERED_OPERATIONS", 3)
    cards = book()
    active = [iccid for iccid in ICCIDS if cards.status(iccid, NOW) == "active"]
    for number, iccid in enumerate(active[:5]):
        cards.operate(iccid, "suspended", f"op-{number}", NOW)
    assert [cards.operation(f"op-{number}") is not None for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert cards.status(active[0], NOW) == "suspended", "the card stays as it was left"


@pytest.mark.parametrize(
    ("moment", "elapsed_days"),
    [
        (datetime(2026, 3, 26, 16, tzinfo=UTC), 0),
        (datetime(2026, 3, 25, 16, tzinfo=UTC), 27),
        (datetime(2026, 1, 1, 16, tzinfo=UTC), 6),
    ],
)
def test_a_cycle_may_begin_on_another_day(moment: datetime, elapsed_days: int) -> None:
    a_day = expected_usage_kb(ICCIDS[0], datetime(2026, 3, 1, 16, tzinfo=UTC), 7)
    assert expected_usage_kb(ICCIDS[0], moment, 7, billing_day=27) == elapsed_days * a_day
