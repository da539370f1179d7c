"""Redis comes back with what it knew some time ago, while nobody leads who could tell."""

import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.chaos.checker import Event
from tests.chaos.faults import at_work, leads, wait_s
from tests.chaos.fleet import SHORT, TUNING, Fleet, kill
from tests.waiting import wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.cards.model import Card
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling.tasks import POLLING_QUEUE

pytestmark = pytest.mark.chaos

HELD = "Redis 重启或切换过而无主节点核对数据，暂缓认领"
VERY_SLOW_CARRIER = pytest.mark.parametrize(
    "carrier_latency", [timedelta(seconds=5)], indirect=True, ids=["slow"]
)
"""What is asked just before the restoration is still open when the next leader begins."""
PATIENT = {"visibility": 12.0, "turn_timeout": 8.0, "slot_lease": 8.0}


@VERY_SLOW_CARRIER
async def test_r3_an_older_snapshot_is_restored_while_nobody_leads(
    fleet: Fleet, cards: list[Card], redis_server: EmbeddedRedis
) -> None:
    """Who knew of the claims given since then is dead, and the calls they led to are under way."""
    fleet.tuning = {**TUNING, **PATIENT}
    await at_work(fleet, cards)
    leader, _ = await leads(fleet)
    [standby] = [worker for worker in fleet.workers if worker is not leader and worker.find("已有主节点")]
    snapshot = await snapshot_at_rest(fleet, redis_server)
    await fleet.pool.execute("UPDATE carrier_account SET paused_until = NULL")
    await fleet.event("gw_begin", since=snapshot["mono"])
    await wait_s(1.0)  # all that is due is being asked about
    await kill(leader)
    await restore(fleet, redis_server, snapshot)
    await standby.wait_for(HELD)
    await fleet.judge(cards)


async def snapshot_at_rest(fleet: Fleet, redis_server: EmbeddedRedis) -> Event:
    """Copy what Redis has while no task waits: an old one would be delivered again.

    Return the instant from which on writes will be lost.
    """
    await fleet.pool.execute("UPDATE carrier_account SET paused_until = now() + interval '1 hour'")
    names = queue_keys(POLLING_QUEUE)
    rests_since = time.monotonic()

    async def rests() -> bool:
        nonlocal rests_since
        if await fleet.redis.llen(names.pending) or await fleet.redis.llen(names.active):
            rests_since = time.monotonic()
        return time.monotonic() - rests_since > SHORT.ttl

    await wait_until(rests, timeout=60, description="no poll is under way")
    fleet.note("flush")
    shutil.copytree(_data_of(redis_server), fleet.folder / "snapshot")
    return fleet.events("flush")[-1]


async def restore(fleet: Fleet, redis_server: EmbeddedRedis, snapshot: Event) -> None:
    """Start Redis anew on the copy."""
    await redis_server.kill()
    shutil.rmtree(_data_of(redis_server))
    shutil.copytree(fleet.folder / "snapshot", _data_of(redis_server))
    fleet.note("flush", from_wall=snapshot["wall"])
    await redis_server.start()
    fleet.note("flush", from_wall=snapshot["wall"])


def _data_of(redis_server: EmbeddedRedis) -> Path:
    return redis_server._place.data_folder
