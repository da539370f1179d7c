"""Redis restarts, forgets, refuses, fills up, lies and is robbed, under a fleet at work."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.exceptions import RedisError
from tests.chaos.checker import Event
from tests.chaos.faults import SLOW_CARRIER, at_work, flush, leads, lose_replies, wait_s
from tests.chaos.fleet import SHORT, Fleet, kill
from tests.faultproxy import FaultProxy
from tests.redis_servers import SingleRedis, free_ports
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.cards.model import Card
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import TaskType

pytestmark = pytest.mark.chaos


async def command(fleet: Fleet, *words: str | float) -> Any:
    client: RedisClient = fleet.redis
    return await client.execute_command(*words)


def administrator(fleet: Fleet) -> Any:
    """One connection that stays open whatever is done to the others."""
    return fleet.redis.client()


@asynccontextmanager
async def configured(fleet: Fleet, name: str, value: str | int) -> AsyncIterator[None]:
    """Let Redis run with another setting for a while; the connection that sets it back is kept open."""
    async with administrator(fleet) as admin:
        before = (await admin.config_get(name))[name]
        await admin.config_set(name, value)
        try:
            yield
        finally:
            await admin.config_set(name, before)


async def test_r1_redis_killed_and_restarted_five_times(
    fleet: Fleet, cards: list[Card], redis_server: EmbeddedRedis
) -> None:
    await at_work(fleet, cards)
    for _ in range(5):
        await redis_server.kill()
        await wait_s(random.uniform(0.0, 0.5))
        await redis_server.start()
        await wait_s(random.uniform(0.2, 1.5))
    await fleet.judge(cards)


@SLOW_CARRIER
async def test_r2_redis_flushed_at_random_moments(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    for _ in range(6):
        await wait_s(random.uniform(0.05, 2.0))
        await flush(fleet)
    await fleet.judge(cards)


@SLOW_CARRIER
async def test_r2_redis_flushed_and_the_leader_killed(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    leader, _ = await leads(fleet)
    await flush(fleet)
    await kill(leader)
    await fleet.judge(cards)


async def test_r3_a_stale_replica_is_promoted(fleet: Fleet, cards: list[Card]) -> None:
    ports = free_ports(2)
    folders = [fleet.folder / name for name in ("primary", "replica")]
    for folder in folders:
        folder.mkdir()
    primary, replica = (
        SingleRedis(folder, arguments=("--port", str(port), "--protected-mode", "no"))
        for folder, port in zip(folders, ports, strict=True)
    )
    await primary.start()
    await replica.start()
    try:
        async with FaultProxy(primary.url) as proxy:
            fleet.redis_url, fleet.redis = proxy.url, primary.open()
            await replica.command("REPLICAOF", "127.0.0.1", ports[0])
            await at_work(fleet, cards)
            stale = await stop_replicating(fleet, replica)
            await wait_s(1.0)  # all that is written meanwhile is lost
            fleet.note("flush", from_wall=stale["wall"])
            proxy._target = urlsplit(replica.url)
            await fleet.redis.aclose()
            fleet.redis = replica.open()
            await primary.kill()
            proxy.reset()
            fleet.note("flush", from_wall=stale["wall"])
            await fleet.judge(cards)
            await fleet.redis.aclose()
    finally:
        await primary.kill()
        await replica.kill()


async def stop_replicating(fleet: Fleet, replica: SingleRedis) -> Event:
    """Freeze the replica at what it has; return the instant from which on writes are lost."""

    async def linked() -> bool:
        return bool((await replica.command("INFO", "replication")).get("master_link_status") == "up")

    await wait_until(linked, timeout=20, description="the replica follows")
    fleet.note("flush")
    await replica.command("REPLICAOF", "NO", "ONE")
    return fleet.events("flush")[-1]


async def test_r5_redis_out_of_memory(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    elections = len(fleet.events("elected"))
    async with configured(fleet, "maxmemory", "1mb"):
        await wait_s(3 * SHORT.ttl)
    assert len(fleet.events("elected")) == elections, "a lease can be renewed without memory"
    await fleet.judge(cards)


async def test_r6_redis_may_evict_what_it_holds(fleet: Fleet, cards: list[Card]) -> None:
    async with configured(fleet, "maxmemory-policy", "allkeys-lru"):
        for role in ("leader", "consumer"):
            told = await (await fleet.enlist(role)).wait_for("Redis 的内存淘汰策略")
            assert told["policy"] == "allkeys-lru"
        await fleet.judge(cards)


async def test_r7_redis_turned_into_a_replica_and_back(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    async with administrator(fleet) as admin:
        await admin.execute_command("CONFIG", "SET", "replica-serve-stale-data", "yes")
        await admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            await wait_s(2 * SHORT.ttl)
        finally:
            await admin.execute_command("REPLICAOF", "NO", "ONE")
    await fleet.judge(cards)


async def test_r7_redis_busy_with_a_script(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    async with configured(fleet, "busy-reply-threshold", 200), administrator(fleet) as admin:
        busy = asyncio.create_task(endless(fleet))
        await wait_s(1.5)
        await admin.execute_command("SCRIPT", "KILL")
        await busy
    await fleet.judge(cards)


async def endless(fleet: Fleet) -> None:
    try:
        await command(fleet, "EVAL", "while true do end", 0)
    except RedisError as error:
        assert "killed" in str(error).lower()  # noqa: PT017 - the way it is meant to end


async def test_r8_redis_has_no_connections_left(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    async with administrator(fleet) as admin:
        await admin.config_set("maxclients", 5)
        await admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await wait_s(2 * SHORT.ttl)
        await admin.config_set("maxclients", 1000)
    await fleet.judge(cards)


async def test_r9_redis_changes_its_password_and_back(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    async with administrator(fleet) as admin:
        await admin.config_set("requirepass", "another-one")
        await admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await wait_s(2 * SHORT.ttl)
        await admin.config_set("requirepass", "")
    await fleet.judge(cards)


@pytest.mark.parametrize("script", ["claim", "start", "write_back", "enqueue"])
async def test_r10_replies_lost_after_the_deed(fleet: Fleet, cards: list[Card], script: str) -> None:
    await lose_replies(fleet, cards, script)


async def test_r10_connections_stall_and_are_reset(fleet: Fleet, cards: list[Card]) -> None:
    async with FaultProxy(fleet.redis_url) as proxy:
        fleet.redis_url = proxy.url
        await at_work(fleet, cards)
        proxy.stall()
        await wait_s(SHORT.ttl + 1)
        proxy.resume()
        await fleet.settle(cards)
        for _ in range(10):
            proxy.reset()
            await wait_s(random.uniform(0.05, 0.5))
        await fleet.judge(cards)


async def test_r10_a_stalled_redis_holds_up_no_stop(fleet: Fleet, cards: list[Card]) -> None:
    async with FaultProxy(fleet.redis_url) as proxy:
        fleet.redis_url = proxy.url
        await at_work(fleet, cards)
        proxy.stall()
        began = time.monotonic()
        for worker in fleet.workers:
            worker.signal(signal.SIGTERM)
        for worker in fleet.workers:
            await worker.wait_exit(timeout=12)
        assert time.monotonic() - began <= 8 + 2 + 0.5
        proxy.resume()
        await fleet.enlist("leader")
        await fleet.judge(cards)


async def test_r11_clients_killed_over_and_over(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    async with administrator(fleet) as admin:
        for _ in range(15):
            for kind in ("normal", "pubsub"):
                await admin.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            await wait_s(random.uniform(0.05, 0.3))
    await fleet.judge(cards)


async def test_r12_a_dead_leaders_lease_ends_an_hour_from_now(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    leader, _ = await leads(fleet)
    await kill(leader)
    since = fleet.note("killing")
    late = int(await command(fleet, "HGET", "polling:lease", "expires")) + 3_600_000
    await command(fleet, "HSET", "polling:lease", "expires", late)
    _, election = await leads(fleet, since=since)
    assert election["mono"] - since <= SHORT.ttl + 2 * SHORT.retry + 1
    await fleet.judge(cards)


async def test_r12_a_live_leaders_lease_ended_an_hour_ago(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    leader, _ = await leads(fleet)
    since = fleet.note("robbing")

    async def taken() -> bool:
        await command(fleet, "HSET", "polling:lease", "expires", 1)
        return any(event["pid"] != leader.pid for event in fleet.events("elected") if event["mono"] > since)

    await wait_until(taken, timeout=20, description="the standby took the lease")
    await fleet.judge(cards)


async def test_r13_garbage_in_our_keys(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    queue = PollingQueueManager(fleet.redis)
    shards = queue.shards((fleet.account_id,), (TaskType.POLLING_CARDDATA,))
    for number, member in enumerate(("x", "-5", "1e9", "", "0x1f", "卡")):
        shard = shards[number % len(shards)]
        await command(fleet, "ZADD", f"polling:{{carddata:{fleet.account_id}:{shard.number}}}:due", 0, member)
    await command(fleet, "SET", f"polling:{{realname:{fleet.account_id}:0}}:due", "no sorted set")
    await command(fleet, "SET", f"polling:{{carddata:{fleet.account_id}:1}}:claim", "no number")
    await fleet.judge(cards)


async def test_r14_parts_of_the_task_queue_vanish(fleet: Fleet, cards: list[Card]) -> None:
    await at_work(fleet, cards)
    for part in ("lease", "active", "pending"):
        await command(fleet, "DEL", f"asynq:{{polling}}:{part}")
        await wait_s(0.3)
    async for key in fleet.redis.scan_iter(match="asynq:{polling}:t:*"):
        await command(fleet, "DEL", key)
    await fleet.judge(cards)
