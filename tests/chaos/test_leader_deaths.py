"""P1: the leader is killed at each point around claim and enqueue; no card is lost, none polled twice."""

import pytest
from tests.chaos.fleet import Fleet

from junhong_cmp.cards.model import Card

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("point", ["before_claim", "after_claim", "after_enqueue"])
async def test_p1_leader_killed_around_a_claim(fleet: Fleet, cards: list[Card], point: str) -> None:
    await fleet.enlist("consumer")
    doomed = await fleet.enlist("leader", failpoint=f"{point}:kill:4", started=False)
    await fleet.event("elected")
    await fleet.enlist("leader")
    await doomed.wait_exit(timeout=30)
    assert doomed.returncode == -9
    await fleet.judge(cards)
