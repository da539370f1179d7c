from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.polling.samples import make_account, make_card

from junhong_cmp.cards.model import CardStatus
from junhong_cmp.polling.config import MAX_JITTER, build_snapshot
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.errors import InvalidSnapshotError
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"规则{number}",
        "priority": number,
        "account_id": None,
        "category": None,
        "card_status": None,
        "real_name_status": None,
        "intervals": {"carddata": {"interval_s": number * 60}},
        "enabled": True,
    } | changes


def interval_of(rows: list[dict[str, Any]], **card: Any) -> float | None:
    snapshot = build_snapshot(1, rows, [make_account()])
    rule = snapshot.rule_for(make_card(**card), CARDDATA)
    return None if rule is None else rule.interval.total_seconds()


def test_the_first_match_by_priority_decides() -> None:
    rows = [row(1, priority=9), row(2, priority=3), row(3, priority=3)]
    assert interval_of(rows) == 120


@pytest.mark.parametrize(
    ("condition", "card"),
    [
        ({"account_id": 8}, {"account_id": 8}),
        ({"category": "vip"}, {"category": "vip"}),
        ({"card_status": "active"}, {"status": CardStatus.ACTIVE}),
        ({"real_name_status": "verified"}, {"real_name_status": "verified"}),
    ],
)
def test_each_condition_narrows(condition: dict[str, Any], card: dict[str, Any]) -> None:
    rows = [row(1, **condition), row(2)]
    assert interval_of(rows, **card) == 60
    assert interval_of(rows) == 120


def test_a_task_type_a_rule_does_not_name_is_left_to_the_next() -> None:
    assert interval_of([row(1, intervals={"cardstatus": {"interval_s": 5}}), row(2)]) == 120


def test_a_task_type_switched_off_is_not_polled() -> None:
    assert interval_of([row(1, intervals={"carddata": {"enabled": False}}), row(2)]) is None


def test_a_rule_switched_off_does_not_count_and_is_not_checked() -> None:
    assert interval_of([row(1, enabled=False, intervals="nonsense"), row(2)]) == 120


def test_no_rule_means_no_poll() -> None:
    assert interval_of([]) is None


def test_jitter_has_a_default() -> None:
    snapshot = build_snapshot(1, [row(1)], [])
    assert snapshot.rule_for(make_card(), CARDDATA) == PollRule(timedelta(seconds=60), 0.1)


@pytest.mark.parametrize(
    "bad",
    [
        {"carddata": {"interval_s": 0}},
        {"carddata": {"interval_s": -1}},
        {"carddata": {"interval_s": 1e9}},
        {"carddata": {"interval_s": "60"}},
        {"carddata": {"interval_s": True}},
        {"carddata": {"interval_s": float("nan")}},
        {"carddata": {}},
        {"carddata": 60},
        {"carddata": {"interval_s": 60, "jitter": 0.5}},
        {"carddata": {"interval_s": 60, "jitter": None}},
        {"carddata": {"interval_s": 60, "enabled": "no"}},
        {"carddata": {"interval_s": 60, "jiter": 0.1}},
        {"carddat": {"interval_s": 60}},
        [],
        None,
    ],
)
def test_a_bad_row_refuses_the_whole(bad: Any) -> None:
    with pytest.raises(InvalidSnapshotError, match="规则 2"):
        build_snapshot(1, [row(1), row(2, intervals=bad)], [])


def test_every_fault_is_named_at_once() -> None:
    rows = [row(1, intervals={"x": {}}), row(2, intervals={"carddata": {"interval_s": 0, "y": 1}})]
    with pytest.raises(InvalidSnapshotError) as refused:
        build_snapshot(1, rows, [make_account(qps=0.0)])
    assert len(refused.value.problems) == 4


@pytest.mark.parametrize("qps", [float("nan"), float("inf"), 1e-30, -1.0])
def test_a_rate_nothing_can_be_reckoned_with_refuses_the_whole(qps: float) -> None:
    with pytest.raises(InvalidSnapshotError, match="qps"):
        build_snapshot(1, [row(1)], [make_account(qps=qps)])


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["carddata", "cardstatus", "interval_s", "jitter", "enabled", "?"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_stands_in_a_row_is_refused_or_safe(intervals: Any) -> None:
    try:
        snapshot = build_snapshot(1, [row(1, intervals=intervals)], [])
    except InvalidSnapshotError:
        return
    for rule in snapshot.rules[0].intervals.values():
        assert rule is None or (
            timedelta(seconds=1) <= rule.interval <= timedelta(days=30) and 0 <= rule.jitter <= MAX_JITTER
        )
