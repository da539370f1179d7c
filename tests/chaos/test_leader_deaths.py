"""Leaders are killed, frozen, blocked and told to stop; there is never a second one, nor none for long."""

import signal
import time

import psutil
import pytest
from tests.chaos.faults import leads, wait_s
from tests.chaos.fleet import CARDS, DEFAULT, SHORT, TUNED, Fleet, Lease, kill
from tests.worker_process import WorkerProcess

from junhong_cmp.cards.model import Card

pytestmark = pytest.mark.chaos

KILLS = 10
LIMITS = {"failover_s_max": 20.0, "failover_tuned_s_max": 7.0, "handover_s_max": 3.0}
FROZEN_LEASES = {DEFAULT: 1, TUNED: 3}
"""For so many leases a leader is frozen: one is enough for a successor, three for whatever that one does."""
CRASH = {DEFAULT: "failover_s_max", TUNED: "failover_tuned_s_max"}


def keep(fleet: Fleet, name: str, seconds: float) -> None:
    """Note a duration; one beyond its promise fails the test."""
    fleet.figures[name] = max(seconds, fleet.figures.get(name, 0.0))
    assert seconds <= LIMITS[name]


@pytest.mark.parametrize("point", ["before_claim", "after_claim", "after_enqueue"])
async def test_p1_leader_killed_around_a_claim(fleet: Fleet, cards: list[Card], point: str) -> None:
    await fleet.enlist("consumer")
    doomed = await fleet.enlist("leader", failpoint=f"{point}:kill:4", started=False)
    await fleet.event("elected")
    await fleet.enlist("leader")
    assert await doomed.wait_exit(timeout=30) == -signal.SIGKILL
    await fleet.judge(cards)


async def test_p3_three_leaders_one_killed_ten_times_in_a_row(fleet: Fleet, cards: list[Card]) -> None:
    for role in ("leader", "all", "leader"):
        await fleet.enlist(role, started=False)
    since = 0.0
    for _ in range(KILLS):
        leader, _ = await leads(fleet, since=since)
        standbys = [worker for worker in fleet.workers if worker.returncode is None and worker is not leader]
        for standby in standbys:
            told = await standby.wait_for("已有主节点，本实例热备", timeout=60)
            assert {
                "term",
                "holder",
                "holder_name",
                "holder_host",
                "holder_pid",
                "holder_since",
            } <= told.keys()
        since = fleet.note("killing", victim=leader.pid)
        await kill(leader)
        _, election = await leads(fleet, since=since)
        assert election["mono"] - since <= SHORT.ttl + 2 * SHORT.retry + 1
        await fleet.enlist("leader", started=False)
    await fleet.settle(cards)
    assert len({event["epoch"] for event in fleet.events("elected")}) == KILLS + 1
    await fleet.judge(cards)


@pytest.mark.parametrize("lease", [DEFAULT, TUNED], ids=["default", "tuned"])
async def test_p4_leader_frozen_between_claim_and_enqueue(fleet: Fleet, lease: Lease) -> None:
    """Cards come when a standby waits: its start is no part of the fail-over."""
    fleet.lease = lease
    frozen = await fleet.enlist("leader", failpoint="after_claim:stop:3")
    standby = await fleet.enlist("leader")
    await standby.wait_for("已有主节点，本实例热备")
    cards = await fleet.issue_cards(CARDS)
    stopped = (await fleet.event("failpoint"))["mono"]
    _, election = await leads(fleet, since=stopped)
    keep(fleet, CRASH[lease], election["mono"] - stopped)
    await wait_s(FROZEN_LEASES[lease] * lease.ttl - (time.monotonic() - stopped))
    frozen.signal(signal.SIGCONT)
    await fleet.event("demote", since=stopped, pid=frozen.pid, limit_s=lease.renew + 1)
    await fleet.judge(cards)


async def test_p4_leader_frozen_anywhere_and_resumed(fleet: Fleet, cards: list[Card]) -> None:
    for _ in range(3):
        await fleet.enlist("leader", started=False)
    since = 0.0
    for _ in range(3):
        leader, _ = await leads(fleet, since=since)
        since = fleet.note("freezing", victim=leader.pid)
        leader.signal(signal.SIGSTOP)
        await leads(fleet, since=since)
        await wait_s(SHORT.ttl / 2)
        leader.signal(signal.SIGCONT)
    await fleet.judge(cards)


@pytest.mark.parametrize("lease", [DEFAULT, TUNED], ids=["default", "tuned"])
async def test_p4_leader_killed(fleet: Fleet, cards: list[Card], lease: Lease) -> None:
    fleet.lease = lease
    leader = await fleet.enlist("leader")
    await fleet.enlist("all")
    since = fleet.note("killing", victim=leader.pid)
    await kill(leader)
    _, election = await leads(fleet, since=since)
    keep(fleet, CRASH[lease], election["mono"] - since)
    await fleet.judge(cards)


async def test_p6_event_loop_of_the_leader_blocked(fleet: Fleet, cards: list[Card]) -> None:
    leader = await fleet.enlist("leader", failpoint="after_gw:block:20")
    await fleet.enlist("leader")
    await leader.wait_for("事件循环阻塞", timeout=40)
    await fleet.judge(cards)
    assert len(fleet.events("elected")) - len(fleet.events("elected", pid=leader.pid)) <= 1
    assert not [event for event in fleet.events("demote", pid=leader.pid) if "信任" in event["reason"]]


@pytest.mark.parametrize("lease", [DEFAULT, TUNED], ids=["default", "tuned"])
async def test_p7_leader_told_to_stop_hands_over(fleet: Fleet, cards: list[Card], lease: Lease) -> None:
    fleet.lease = lease
    await fleet.enlist("leader")
    await fleet.enlist("leader")
    since = 0.0
    for _ in range(3):
        leader, _ = await leads(fleet, since=since)
        since = fleet.note("stopping", victim=leader.pid)
        assert await leader.stop() == 0
        _, election = await leads(fleet, since=since)
        keep(fleet, "handover_s_max", election["mono"] - since)
        assert stop_order(leader) == [
            "asynq_scheduler",
            "polling_scheduler",
            "polling_initializer",
            "卸任主节点",
            "queue_server",
        ]
        await fleet.enlist("leader")
    await fleet.judge(cards)


def stop_order(worker: WorkerProcess) -> list[str]:
    """Modules in the order they stopped, and where among them the lease was given up."""
    order = []
    for record in worker.records:
        if record["event"] == "模块已停止":
            order.append(record["module"])
        elif record["event"] == "卸任主节点":
            order.append(record["event"])
    if order[2:4] == ["卸任主节点", "polling_initializer"]:  # the two lines come from two threads
        order[2:4] = order[3:1:-1]
    return order


async def test_p8_second_sigterm_ends_at_once(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader")
    hasty = await fleet.enlist("consumer", failpoint="after_gw:block:10")
    await fleet.event("failpoint", pid=hasty.pid)
    hasty.signal(signal.SIGTERM)
    await wait_s(0.1)
    hasty.signal(signal.SIGTERM)
    assert await hasty.wait_exit(timeout=2) == 128 + signal.SIGTERM
    await fleet.judge(cards)


async def test_p10_sigterm_between_election_and_the_first_claim(fleet: Fleet, cards: list[Card]) -> None:
    fleet.lease = DEFAULT
    leaver = await fleet.enlist("leader", failpoint="after_acquire:term", started=False)
    assert await leaver.wait_exit() == 0
    await fleet.enlist("leader", started=False)
    started = await fleet.event("began", since=fleet.note("joined"))
    _, election = await leads(fleet, since=started["mono"])
    assert election["mono"] - started["mono"] < 5, "the lease was not given up"
    await fleet.judge(cards)


async def test_p12_leader_left_alone_consumes_itself(fleet: Fleet, cards: list[Card]) -> None:
    leader = await fleet.enlist("leader")
    consumers = [await fleet.enlist("consumer") for _ in range(2)]
    await fleet.settle(cards)
    for consumer in consumers:
        await kill(consumer)
    await fleet.judge(cards)
    healed = fleet.events("healed")[-1]["mono"]
    assert {event["pid"] for event in fleet.events("commit") if event["mono"] > healed} == {leader.pid}


async def test_p14_two_of_one_name_are_two(fleet: Fleet, cards: list[Card]) -> None:
    twin = {"JUNHONG_WORKER_INSTANCE_NAME": "twin"}
    await fleet.enlist("leader", env=twin)
    await fleet.enlist("leader", env=twin)
    leader, election = await leads(fleet)
    assert len(fleet.events("elected")) == 1
    await kill(leader)
    _, second = await leads(fleet, since=election["mono"] + 0.001)
    assert second["pid"] != leader.pid
    await fleet.judge(cards)


async def test_p15_a_killed_leader_leaves_no_process(fleet: Fleet, cards: list[Card]) -> None:
    leader = await fleet.enlist("leader")
    await fleet.settle(cards)
    children = psutil.Process(leader.pid).children(recursive=True)
    await kill(leader)
    _, alive = psutil.wait_procs(children, timeout=3)
    assert not alive
    await fleet.enlist("leader")
    await fleet.judge(cards)


async def test_k1_wall_clocks_an_hour_off(fleet: Fleet, cards: list[Card]) -> None:
    await fleet.enlist("leader", wall_shift_s=3600)
    await fleet.enlist("consumer", wall_shift_s=-3600)
    await fleet.enlist("consumer")
    for _ in range(3):
        await fleet.settle(cards)
    await fleet.judge(cards)
