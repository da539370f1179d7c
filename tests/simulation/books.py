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
from tests.simulation.plan import Habit

_CARDS = "SELECT id, iccid, cycle, cycle_used_kb FROM iot_card"
_CYCLES = "SELECT card_id, cycle, used_kb, closed FROM card_usage_cycle"
_DAYS = "SELECT card_id, day, used_kb FROM card_usage_daily WHERE used_kb <> 0"
_ANOMALIES = "SELECT card_id, kind FROM usage_anomaly"


@dataclass
class CardTotals:
    """The totals of a card: the highest mark of each cycle, the growth of each day, the cycle it is in.

    The first reading a card ever has is where counting begins; it is no growth.
    """

    marks: dict[date, int] = field(default_factory=dict)
    days: Counter[date] = field(default_factory=Counter)
    closed: set[date] = field(default_factory=set)
    anomalies: set[str] = field(default_factory=set)

    @property
    def cycle(self) -> date:
        return max(self.marks)

    def take(self, answer: Answer) -> None:
        """Take the next answer in."""
        if answer.lies:
            self.anomalies.add(answer.habit.value)
            return
        known = bool(self.marks)
        if known and answer.cycle > self.cycle:
            self.closed.add(self.cycle)
        before = self.marks.get(answer.cycle, 0)
        if known and answer.kb > before:
            self.days[answer.day] += answer.kb - before
        self.marks[answer.cycle] = max(before, answer.kb)


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
        if row["kind"] in {Habit.UNIT, Habit.JUMP}:
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
    """Return the calls that asked a card the same while another one did."""
    by_card: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        by_card[call.op, call.iccid[:19]].append(call)
    return [pair for one_card in by_card.values() for pair in _overlapping(one_card)]


def _overlapping(calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    ordered = sorted(calls, key=lambda call: call.begin_s)
    return [(one, two) for one, two in pairwise(ordered) if two.begin_s < one.end_s]
