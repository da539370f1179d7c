"""The shared fixtures hand out real, fresh servers."""

import asyncpg
from redis.asyncio import Redis

from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.embedded.redis_server import EmbeddedRedis


async def test_redis_is_empty_and_real(redis: Redis) -> None:
    assert await redis.dbsize() == 0
    await redis.set("left", "over")


async def test_redis_keeps_its_data_over_a_restart_and_a_crash(
    redis_server: EmbeddedRedis, redis: Redis
) -> None:
    await redis.set("kept", "yes")
    await redis_server.restart()
    assert await redis.get("kept") == b"yes"
    await redis_server.kill()
    await redis_server.start()
    assert await redis.get("kept") == b"yes"


async def test_redis_left_stopped_is_running_for_the_next_test(redis_server: EmbeddedRedis) -> None:
    await redis_server.stop()


async def test_postgres_database_is_migrated(pool: Pool) -> None:
    assert await pool.fetchval("SELECT count(*) FROM iot_card") == 0


async def test_postgres_survives_restart_and_crash(
    postgres_server: EmbeddedPostgres, postgres_dsn: str
) -> None:
    await postgres_server.restart()
    await postgres_server.kill()
    await postgres_server.start()
    connection = await asyncpg.connect(postgres_dsn)
    assert await connection.fetchval("SELECT count(*) FROM iot_card") == 0
    await connection.close()


def test_synchronous_tests_get_them_too(postgres_dsn: str, redis_url: str) -> None:
    assert "host=" in postgres_dsn
    assert redis_url.startswith("unix://")
