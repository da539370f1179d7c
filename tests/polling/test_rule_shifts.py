"""Whose word counts after a rule was changed."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from junhong_cmp.cards.model import CardStatus, RealNameStatus
from junhong_cmp.polling.config import PollingConfigRule, PollingConfigSnapshot
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.rule_matches import CardGroup
from junhong_cmp.polling.rule_shifts import RuleShift, ShiftWay, find_shifts
from junhong_cmp.polling.tasks import TaskType

DATA, STATUS = TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS
HOURLY = PollRule(timedelta(hours=1))


def group(cards: int, category: str = "") -> CardGroup:
    return CardGroup(
        account_id=1,
        category=category,
        status=CardStatus.ACTIVE,
        real_name_required=False,
        real_name_status=RealNameStatus.UNKNOWN,
        orphan=False,
        cards=cards,
    )


def rule(
    number: int,
    priority: int,
    intervals: Mapping[TaskType, PollRule | None] | None = None,
    category: str | None = None,
) -> PollingConfigRule:
    return PollingConfigRule(
        id=number,
        name=f"r{number}",
        priority=priority,
        category=category,
        intervals={DATA: HOURLY} if intervals is None else intervals,
    )


def snapshot(*rules: PollingConfigRule) -> PollingConfigSnapshot:
    return PollingConfigSnapshot(1, sorted(rules, key=lambda each: (each.priority, each.id)), {})


GROUPS = [group(7), group(2, "vip")]
OLD, NEW, VIP = rule(1, 1_000), rule(2, 100), rule(3, 10, category="vip")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (snapshot(), snapshot(NEW), []),
        (snapshot(NEW), snapshot(NEW), []),
        (snapshot(OLD), snapshot(OLD, NEW), [RuleShift(ShiftWay.TAKEN, DATA, OLD, 9)]),
        (
            snapshot(OLD, VIP),
            snapshot(OLD, VIP, NEW),
            [RuleShift(ShiftWay.TAKEN, DATA, OLD, 7), RuleShift(ShiftWay.OUTRANKED, DATA, VIP, 2)],
        ),
        (snapshot(OLD, NEW), snapshot(OLD), [RuleShift(ShiftWay.LOST, DATA, OLD, 9)]),
        (snapshot(NEW), snapshot(), [RuleShift(ShiftWay.LOST, DATA, None, 9)]),
        (None, snapshot(VIP, NEW), [RuleShift(ShiftWay.OUTRANKED, DATA, VIP, 2)]),
    ],
)
def test_cards_change_hands(
    before: PollingConfigSnapshot | None, after: PollingConfigSnapshot, found: list[RuleShift]
) -> None:
    assert find_shifts(GROUPS, before, after, NEW.id) == found


def test_what_a_rule_leaves_to_others_shifts_nothing() -> None:
    both = rule(1, 1_000, {DATA: HOURLY, STATUS: HOURLY})
    says_no = rule(2, 100, {STATUS: None})
    (shift,) = find_shifts(GROUPS, snapshot(both), snapshot(both, says_no), says_no.id)
    assert shift == RuleShift(ShiftWay.TAKEN, STATUS, both, 9)
