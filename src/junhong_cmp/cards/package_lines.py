"""The usage at which something is to be said or done about a card; crossing one is seen in memory. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from junhong_cmp.cards.alerts import AlertKind, AlertRule
from junhong_cmp.cards.model import Card

_STOP_SHARE: Final = 1.0


@dataclass(frozen=True, slots=True)
class PackageLines:
    """What all plans contain, by account and name, and the rules that speak at a share of a limit."""

    plan_quotas: Mapping[tuple[int, str], int] = field(default_factory=dict)
    rules: Sequence[AlertRule] = ()

    def crosses(self, card: Card, cycle: str | None, used_kb: int) -> bool:
        """Whether the reading that brought ``card`` to ``used_kb`` in ``cycle`` crossed a line of its own.

        ``card`` is as it was before. In a new cycle every line begins anew; no growth crosses nothing.
        """
        before_kb = card.cycle_used_kb if card.cycle == cycle else -1
        if used_kb <= before_kb:
            return False
        return any(before_kb < line <= used_kb for line in self._lines(card))

    def _lines(self, card: Card) -> Iterator[float]:
        limits = [(AlertKind.THRESHOLD, card.threshold_kb)]
        if card.plan is not None:
            limits.append((AlertKind.PLAN_USAGE, self.plan_quotas.get((card.account_id, card.plan))))
        for kind, limit_kb in limits:
            if limit_kb:
                yield limit_kb * _STOP_SHARE
                for rule in self.rules:
                    if rule.kind is kind and _concerns(rule, card):
                        yield limit_kb * rule.threshold


def _concerns(rule: AlertRule, card: Card) -> bool:
    return rule.account_id in (None, card.account_id) and rule.category in (None, card.category)
