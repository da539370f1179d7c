"""What a changed rule means for the rules beside it: whose word counts now for which cards. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from junhong_cmp.polling.config import PollingConfigRule, PollingConfigSnapshot
from junhong_cmp.polling.rule_matches import CardGroup, wanted_types
from junhong_cmp.polling.tasks import TaskType


class ShiftWay(StrEnum):
    """TAKEN: another rule decided, this one does now. LOST: the reverse. OUTRANKED: another still does."""

    TAKEN = "taken"
    LOST = "lost"
    OUTRANKED = "outranked"


@dataclass(frozen=True, slots=True)
class RuleShift:
    """So many cards about which, for a task type, another rule than the changed one decides or did.

    ``other`` is None where no rule says anything any more.
    """

    way: ShiftWay
    task_type: TaskType
    other: PollingConfigRule | None
    cards: int


def find_shifts(
    groups: Sequence[CardGroup],
    before: PollingConfigSnapshot | None,
    after: PollingConfigSnapshot,
    rule_id: int,
) -> list[RuleShift]:
    """Return what the change of a rule shifted, by task type; ``before`` is None where it was invalid."""
    counts: Counter[tuple[TaskType, ShiftWay, int | None]] = Counter()
    others: dict[int, PollingConfigRule] = {}
    mine = next((rule for rule in after.rules if rule.id == rule_id), None)
    for group in groups:
        for task_type in wanted_types(group):
            was = None if before is None else before.deciding_rule(group, task_type)
            now = after.deciding_rule(group, task_type)
            speaks = mine is not None and task_type in mine.intervals and mine.matches(group)
            found = _shift(was, now, rule_id, speaks=speaks)
            if found is not None:
                way, other = found
                counts[task_type, way, None if other is None else other.id] += group.cards
                others |= {} if other is None else {other.id: other}
    return [
        RuleShift(way, task_type, None if other_id is None else others[other_id], cards)
        for (task_type, way, other_id), cards in sorted(
            counts.items(), key=lambda item: list(TaskType).index(item[0][0])
        )
    ]


def _shift(
    was: PollingConfigRule | None, now: PollingConfigRule | None, rule_id: int, *, speaks: bool
) -> tuple[ShiftWay, PollingConfigRule | None] | None:
    """Return how cards alike have shifted, and to or from which rule."""
    if now is not None and now.id == rule_id:
        return None if was is None or was.id == rule_id else (ShiftWay.TAKEN, was)
    if was is not None and was.id == rule_id:
        return ShiftWay.LOST, now
    return (ShiftWay.OUTRANKED, now) if speaks else None
