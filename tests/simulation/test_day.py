"""Simulated hours in real minutes: at the end PostgreSQL agrees with the carriers' own books."""

from collections.abc import Callable

import orjson
import pytest
from tests.simulation.day import SimulatedDay, Verdict
from tests.simulation.plan import Habit, Plan, days, minutes

Prepare = Callable[[Plan], SimulatedDay]


async def test_four_minutes_around_a_months_end(prepare: Prepare) -> None:
    verdict = await prepare(minutes()).live()

    check(verdict)
    assert any(answer.day.month == 3 and answer.cycle.month == 3 for answer in verdict.answers)


@pytest.mark.simulation
async def test_two_days_over_two_billing_days(
    prepare: Prepare, record_property: Callable[[str, object], None]
) -> None:
    verdict = await prepare(days(cards_per_account=153)).live()

    record_property("simulation", orjson.dumps(verdict.figures).decode())
    check(verdict)
    assert verdict.habits() == set(Habit)


def check(verdict: Verdict) -> None:
    assert not [said for said in verdict.refused if "token_expired" not in said], verdict.refused
    assert not verdict.differing, verdict.explain()
    assert not verdict.lost, verdict.lost[:10]
    assert not verdict.doubled, verdict.doubled[:3]
