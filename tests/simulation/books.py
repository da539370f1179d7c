"""What the carriers' logs come to, card by card, and where PostgreSQL says otherwise.

The log tells what no reading tells: of which cycle each answer was, and whether it was true. So the totals
follow without any of the rules by which the product has to find that out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

import asyncpg
from tests.simulation.carrier import Answer, Call
from tests.simulation.plan import HELD_OVER, LIES

_POLLS = frozenset({"usage", "status", "realname"})
_CARDS = "SELECT id, iccid, cycle, cycle_used_kb FROM iot_card"
_CYCLES = "SELECT card_id, cycle, used_kb, closed FROM card_usage_cycle"
_DAYS = "SELECT card_id, day, used_kb FROM card_usage_daily WHERE used_kb <> 0"
_ANOMALIES = "SELECT card_id, kind FROM usage_anomaly"


@dataclass
class CardTotals:
    """The totals of a card: the highest mark of each cycle, the growth of each day, what is closed.

    The first reading a card ever has is where counting begins; it is no growth. What a counter shows of the
    old cycle after its end is news of that cycle only once the new one has been seen, and none thereafter.
    """

    marks: dict[date, int] = field(default_factory=dict)
    days: Counter[date] = field(default_factory=Counter)
    closed: set[date] = field(default_factory=set)
    anomalies: set[str] = field(default_factory=set)
    _held_over: dict[date, int] = field(default_factory=dict, compare=False, repr=False)

    def take(self, answer: Answer) -> None:
        """Take the next answer in."""
        if answer.habit in LIES:
            self.anomalies.add(answer.habit.value)
        elif not self.marks:
            self.marks[answer.cycle] = answer.kb
        elif answer.habit in HELD_OVER:
            self._hold(answer)
        else:
            self._count(answer)

    def _hold(self, answer: Answer) -> None:
        if answer.cycle == max(self.marks):
            held_kb = self._held_over.get(answer.cycle, 0)
            self._held_over[answer.cycle] = max(held_kb, answer.kb)

    def _count(self, answer: Answer) -> None:
        current = max(self.marks)
        if answer.cycle > current:
            self.closed.add(current)
            self._raise(current, self._held_over.pop(current, 0), answer.day)
        self._raise(answer.cycle, answer.kb, answer.day)

    def _raise(self, cycle: date, kb: int, day: date) -> None:
        before_kb = self.marks.get(cycle, 0)
        if kb > before_kb:
            self.days[day] += kb - before_kb
        self.marks[cycle] = max(before_kb, kb)


def totals_of(answers: Iterable[Answer]) -> dict[str, CardTotals]:
    """Return the totals of every card that was told of."""
    totals: defaultdict[str, CardTotals] = defaultdict(CardTotals)
    for answer in answers:
        totals[answer.iccid].take(answer)
    return dict(totals)


async def recorded_totals(pool: asyncpg.Pool) -> dict[str, CardTotals]:
    """Return what PostgreSQL holds of every card that was ever read."""
    totals: dict[str, CardTotals] = {}
    by_id: dict[int, CardTotals] = {}
    rows = await pool.fetch(_CARDS)
    for row in rows:
        totals[row["iccid"]] = by_id[row["id"]] = CardTotals()
    for row in await pool.fetch(_CYCLES):
        card, cycle = by_id[row["card_id"]], date.fromisoformat(row["cycle"])
        card.marks[cycle] = row["used_kb"]
        card.closed |= {cycle} if row["closed"] else set()
    for row in await pool.fetch(_DAYS):
        by_id[row["card_id"]].days[row["day"]] = row["used_kb"]
    for row in await pool.fetch(_ANOMALIES):
        if row["kind"] in LIES:
            by_id[row["card_id"]].anomalies.add(row["kind"])
    for row in rows:
        if row["cycle"] is not None:  # the card's own high-water mark is the one that rules go by
            totals[row["iccid"]].marks[date.fromisoformat(row["cycle"])] = row["cycle_used_kb"]
    return {iccid: card for iccid, card in totals.items() if card.marks}


def mismatches(
    expected: Mapping[str, CardTotals], recorded: Mapping[str, CardTotals]
) -> dict[str, tuple[CardTotals | None, CardTotals | None]]:
    """Return the cards whose totals differ, with both versions."""
    return {
        iccid: (expected.get(iccid), recorded.get(iccid))
        for iccid in sorted(expected.keys() | recorded.keys())
        if expected.get(iccid) != recorded.get(iccid)
    }


def overlaps(calls: Iterable[Call]) -> list[tuple[Call, Call]]:
    """Return the calls of polls that asked a card the same while another one did.

    Different polls of a card may look its number up at the same time.
    """
    by_card: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        if call.op not in _POLLS:
            continue
        by_card[call.op, call.iccid[:19]].append(call)
    return [pair for one_card in by_card.values() for pair in _overlapping(one_card)]


def _overlapping(calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    ordered = sorted(calls, key=lambda call: call.begin_s)
    return [(one, two) for one, two in pairwise(ordered) if two.begin_s < one.end_s]
