"""The network parts fleet and Redis in two: one half keeps the primary, the other promotes a replica."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from redis.exceptions import ResponseError
from tests.chaos.checker import check
from tests.chaos.faults import leads, wait_s
from tests.chaos.fleet import SHORT, Fleet
from tests.faultproxy import FaultProxy
from tests.redis_servers import SingleRedis, free_ports
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.cards.model import Card
from junhong_cmp.gateway.simulator_log import summarise

pytestmark = pytest.mark.chaos

MAX_LAG_S = 2
REFUSED_WITHIN_S = MAX_LAG_S + 1.5
"""The primary takes stock of its replicas once a second."""


@dataclass
class Halves:
    """Two halves are a primary, its replica, and clients that reach one of them, each by a way of its own."""

    fleet: Fleet
    primary: SingleRedis
    replica: SingleRedis
    link: FaultProxy
    near: FaultProxy
    far: FaultProxy
    near_workers: list[WorkerProcess]

    async def part(self) -> float:
        """Cut replication and the far half off the primary; return the instant."""
        parted = self.fleet.note("flush")  # what the primary takes from here on is lost in the end
        self.link.stall()
        self.far.refuse()
        return parted

    async def refused(self) -> bool:
        """Whether the primary refuses writes for lack of a replica."""
        try:
            await self.primary.command("SET", "probe", "1")
        except ResponseError as error:
            return "NOREPLICAS" in str(error)
        return False

    async def promote(self) -> None:
        """Let the far half have the replica for its primary."""
        await self.replica.command("REPLICAOF", "NO", "ONE")
        self.far._target = urlsplit(self.replica.url)
        self.far.resume()
        await self.fleet.redis.aclose()
        self.fleet.redis = self.replica.open()

    async def join(self) -> None:
        """End the old primary; its half finds the new one."""
        self.fleet.note("flush", from_wall=self.fleet.events("flush")[0]["wall"])
        self.near._target = urlsplit(self.replica.url)
        await self.primary.kill()
        self.near.reset()


@pytest.fixture
async def halves(fleet: Fleet, cards: list[Card]) -> AsyncIterator[Halves]:
    """A leader and a consumer near the primary, a standby and a consumer on the far side, all at work."""
    ports = free_ports(2)
    servers = []
    for name, port in zip(("primary", "replica"), ports, strict=True):
        (fleet.folder / name).mkdir()
        options = ("--port", str(port), "--protected-mode", "no", "--repl-ping-replica-period", "1")
        servers.append(SingleRedis(fleet.folder / name, arguments=options))
        await servers[-1].start()
    primary, replica = servers
    try:
        async with (
            FaultProxy(f"redis://127.0.0.1:{ports[0]}/0") as link,
            FaultProxy(primary.url) as near,
            FaultProxy(primary.url) as far,
        ):
            await replicate(primary, replica, link)
            fleet.redis = primary.open()
            fleet.redis_url = near.url
            near_workers = [await fleet.enlist("leader"), await fleet.enlist("consumer")]
            fleet.redis_url = far.url
            await fleet.enlist("leader")
            await fleet.enlist("consumer")
            await fleet.settle(cards)
            yield Halves(fleet, primary, replica, link, near, far, near_workers)
            await fleet.redis.aclose()
    finally:
        await primary.kill()
        await replica.kill()


async def replicate(primary: SingleRedis, replica: SingleRedis, link: FaultProxy) -> None:
    await replica.command("REPLICAOF", "127.0.0.1", link.port)

    async def followed() -> bool:
        info = await primary.command("INFO", "replication")
        return bool(info.get("slave0", {}).get("state") == "online")

    await wait_until(followed, timeout=20, description="the replica follows")
    await primary.command("CONFIG", "SET", "min-replicas-max-lag", MAX_LAG_S)
    await primary.command("CONFIG", "SET", "min-replicas-to-write", 1)


async def test_r4_the_half_without_a_replica_degrades(halves: Halves, cards: list[Card]) -> None:
    fleet = halves.fleet
    leader, _ = await leads(fleet)
    assert leader in halves.near_workers
    parted = await halves.part()
    await wait_until(halves.refused, timeout=REFUSED_WITHIN_S, description="the primary refuses writes")
    refused = fleet.note("flush")
    await halves.promote()
    await fleet.event("demote", since=parted, pid=leader.pid, limit_s=SHORT.ttl + 2)
    successor, _ = await leads(fleet, since=parted)
    assert successor not in halves.near_workers
    await fleet.settle(cards)  # by the far half alone
    near = {worker.pid for worker in halves.near_workers}
    late = [event for event in fleet.events("gw_begin") if event["mono"] > refused + 0.5]
    assert late
    assert not [event for event in late if event["pid"] in near], "what cannot be kept was asked for"
    assert all(worker.returncode is None for worker in halves.near_workers)
    await halves.join()
    await fleet.judge(cards)


async def test_r4_both_halves_take_writes_for_a_moment(halves: Halves, cards: list[Card]) -> None:
    """Nothing can keep two writable servers from giving one claim twice; how long they may is bounded."""
    fleet = halves.fleet
    parted = await halves.part()
    await halves.promote()
    await wait_until(halves.refused, timeout=REFUSED_WITHIN_S, description="the old primary refuses writes")
    refused = fleet.note("flush")
    await wait_s(SHORT.ttl)
    await halves.join()
    await fleet.settle(cards)
    verdict = check(fleet.events(), fleet._calls(), await fleet._remains(cards))
    doubled = verdict.count("doubled")
    assert len(verdict.faults) == doubled, str(verdict)
    span = {event["wall"] - event["mono"] for event in fleet.events("flush")}
    began, ended = parted + min(span), refused + max(span) + 0.5
    for overlap in summarise(fleet._calls()).overlaps:
        assert began <= overlap.second.t_start <= ended, f"asked twice at once after the split: {overlap}"
    twice = "SELECT count(*) FROM iot_card WHERE cycle_used_kb IS DISTINCT FROM last_reading_kb"
    assert await fleet.pool.fetchval(twice) == 0, "usage read twice was counted twice"
    for worker in fleet.workers:
        assert await worker.stop() == 0
