"""Crossing a line is seen once, by the two figures alone."""

from hypothesis import given
from hypothesis import strategies as st
from tests.polling.samples import make_card

from junhong_cmp.cards.alerts import AlertKind, AlertRule
from junhong_cmp.cards.package_lines import PackageLines

LINES = PackageLines(
    plan_quotas={(7, "5GB"): 5000},
    rules=[
        AlertRule(
            id=1,
            name="80 %",
            kind=AlertKind.PLAN_USAGE,
            account_id=None,
            category=None,
            level="warning",
            threshold=0.8,
        ),
        AlertRule(
            id=2,
            name="VIP",
            kind=AlertKind.THRESHOLD,
            account_id=7,
            category="vip",
            level="info",
            threshold=0.5,
        ),
    ],
)


def test_each_line_is_crossed_by_the_reading_that_reaches_it() -> None:
    used, crossings = 0, []
    for reading in (3999, 4000, 4500, 4999, 5000, 6000):
        card = make_card(plan="5GB", cycle="c", cycle_used_kb=used)
        if LINES.crosses(card, "c", reading):
            crossings.append(reading)
        used = reading
    assert crossings == [4000, 5000]


def test_rules_speak_of_their_accounts_and_categories() -> None:
    plain = make_card(threshold_kb=1000, cycle="c")
    assert not LINES.crosses(plain, "c", 600)
    assert LINES.crosses(plain, "c", 1000)
    assert LINES.crosses(make_card(threshold_kb=1000, cycle="c", category="vip"), "c", 600)


def test_a_new_cycle_and_a_first_reading_begin_at_nothing() -> None:
    assert LINES.crosses(make_card(plan="5GB", cycle="a", cycle_used_kb=9000), "b", 4000)
    assert LINES.crosses(make_card(plan="5GB"), "b", 5000)
    assert not LINES.crosses(make_card(plan="5GB", cycle="b", cycle_used_kb=5000), "b", 5000)


def test_cards_without_limits_cross_nothing() -> None:
    for card in (make_card(), make_card(plan="unknown"), make_card(threshold_kb=0), make_card(account_id=8)):
        assert not LINES.crosses(card, "c", 10**9)


@given(st.lists(st.integers(0, 8000), min_size=1))
def test_however_readings_come_a_line_is_crossed_exactly_once(readings: list[int]) -> None:
    used, crossings = 0, 0
    for reading in readings:
        mark = max(used, reading)
        crossings += LINES.crosses(make_card(threshold_kb=5000, cycle="c", cycle_used_kb=used), "c", mark)
        used = mark
    assert crossings == (max(readings) >= 5000)
