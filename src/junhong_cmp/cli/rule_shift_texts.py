"""How an operator is told which rule counts now, and who cannot keep up with the rules."""

from collections.abc import Sequence
from typing import Any, Final

from junhong_cmp.polling.config import PollingConfigRule
from junhong_cmp.polling.rule_matches import AccountLoad
from junhong_cmp.polling.rule_shifts import RuleShift, ShiftWay

KIND_NAMES: Final = {"carddata": "流量", "cardstatus": "卡状态", "realname": "实名"}


def shift_texts(shifts: Sequence[RuleShift]) -> list[str]:
    """Return a sentence for each shift."""
    return [f"{KIND_NAMES[shift.task_type.kind]}：{shift.cards} 张卡{_what(shift)}" for shift in shifts]


def shifts_as_json(shifts: Sequence[RuleShift]) -> list[dict[str, Any]]:
    """Return the shifts as plain values; ``rule`` is the id of the other rule."""
    return [
        {
            "type": shift.task_type.kind,
            "way": shift.way.value,
            "rule": None if shift.other is None else shift.other.id,
            "cards": shift.cards,
        }
        for shift in shifts
    ]


def load_texts(loads: Sequence[AccountLoad]) -> list[str]:
    """Return a sentence for each account that the rules ask for more than it allows."""
    return [
        f"账号 {load.account} 跟不上：规则需要每秒 {load.required_qps:g} 次，账号允许 {load.allowed_qps:g} 次"
        for load in loads
        if load.is_too_much
    ]


def _what(shift: RuleShift) -> str:
    if shift.other is None:
        return "不再有规则决定，不轮询"
    other = _named(shift.other)
    match shift.way:
        case ShiftWay.TAKEN:
            return f"改由本规则决定，此前为{other}"
        case ShiftWay.LOST:
            return f"改由{other}决定"
        case ShiftWay.OUTRANKED:
            return f"仍由先于本规则的{other}决定，--priority 可改"


def _named(rule: PollingConfigRule) -> str:
    return f"规则 #{rule.id} {rule.name}（优先级 {rule.priority}）"
