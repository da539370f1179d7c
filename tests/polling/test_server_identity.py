"""The name of the Redis process that answers."""

from pathlib import Path

from redis.asyncio import Redis
from tests.redis_servers import ThreeNodeCluster

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling.server_identity import UNKNOWN, is_cluster, server_identity


async def test_it_is_another_after_each_restart_and_the_same_in_between(
    redis_server: EmbeddedRedis, redis: Redis
) -> None:
    before = await server_identity(redis)
    assert before
    assert before == await server_identity(redis) == (await redis.info("server"))["run_id"]
    await redis_server.stop()
    await redis_server.start()
    assert await server_identity(redis) != before


async def test_it_is_unknown_to_a_user_who_may_not_ask(redis: Redis, redis_url: str) -> None:
    await redis.acl_setuser("blind", enabled=True, passwords=["+pw"], commands=["+ping"], keys=["*"])
    try:
        blind = Redis.from_url(redis_url, username="blind", password="pw")
        async with blind:
            assert await server_identity(blind) == UNKNOWN
    finally:
        await redis.acl_deluser("blind")


async def test_of_a_cluster_every_primary_counts(data_folder: Path) -> None:
    cluster = ThreeNodeCluster(data_folder)
    await cluster.start()
    client = open_redis(cluster.url)
    try:
        assert is_cluster(client)
        before = await server_identity(client)
        assert before
        assert before == await server_identity(client)
        await cluster._nodes[1].stop()
        await cluster.start()
        assert await server_identity(client) != before
    finally:
        await client.aclose()
        await cluster.stop()
