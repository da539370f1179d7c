"""Cards that share a task and a call are broken off in the middle of it; none is lost or asked for twice."""

import signal

import pytest
from tests.chaos.faults import POINTS, SLOW_CARRIER, at_work, flush, lose_replies, wait_s
from tests.chaos.fleet import Fleet

from junhong_cmp.cards.model import Card

pytestmark = pytest.mark.chaos

BATCH = 20


@pytest.fixture
async def cards(fleet: Fleet) -> list[Card]:
    """Cards of an account whose carrier takes many of them in one call."""
    fleet.batch_size = BATCH
    await fleet.open_account()
    return await fleet.issue_cards(200)


def assert_shared(fleet: Fleet) -> None:
    calls = {(event["pid"], event["mono"]) for event in fleet.events("gw_begin")}
    assert len(calls) < len(fleet.events("gw_begin")) / 2, "cards shared no calls"


async def test_p2_consumers_killed_in_the_middle_of_batches(fleet: Fleet, cards: list[Card]) -> None:
    leader = await fleet.enlist("leader")
    leader.signal(signal.SIGTSTP)  # it may be the faster one each time: now it schedules and takes nothing
    doomed = [
        await fleet.enlist("consumer", failpoint=f"{point}:kill:{nth}", started=False)
        for nth, point in enumerate(POINTS, start=1)
    ]
    for consumer in doomed:
        assert await consumer.wait_exit(timeout=40) == -signal.SIGKILL
    await fleet.enlist("consumer")
    await fleet.judge(cards)
    assert_shared(fleet)


async def test_p5_consumer_frozen_in_the_middle_of_a_batch(fleet: Fleet, cards: list[Card]) -> None:
    leader = await fleet.enlist("leader")
    leader.signal(signal.SIGTSTP)  # it may be the faster one each time: now it schedules and takes nothing
    frozen = await fleet.enlist("consumer", failpoint="after_gw:stop:2")
    held = await fleet.event("failpoint", pid=frozen.pid)
    await fleet.enlist("consumer")
    calls = [event for event in fleet.events("gw_call", pid=frozen.pid) if event["seq"] < held["seq"]]
    claims = {(event["card"], event["claim"]) for event in calls if event["mono"] == calls[-1]["mono"]}
    await fleet.settle(cards)
    frozen.signal(signal.SIGCONT)
    await fleet.judge(cards)
    assert_shared(fleet)
    kept = fleet.events("write_back", pid=frozen.pid, outcome="ok")
    assert len(claims) > 1
    assert not claims & {(event["card"], event["claim"]) for event in kept}


@SLOW_CARRIER
async def test_r2_redis_flushed_under_batches(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    for _ in range(3):
        await wait_s(1.0)
        await flush(fleet)
    await fleet.judge(cards)
    assert_shared(fleet)


@pytest.mark.parametrize("script", ["start", "write_back"])
async def test_r10_replies_lost_to_batches(fleet: Fleet, cards: list[Card], script: str) -> None:
    await lose_replies(fleet, cards, script)
    assert_shared(fleet)
