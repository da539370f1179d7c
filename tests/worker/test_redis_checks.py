"""What is said about a dangerous Redis."""

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from junhong_cmp.worker.redis_checks import check_redis, is_open_to_the_network


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("redis://10.0.0.5:6379/0", True),
        ("rediss://redis.example", True),
        ("redis://:pw@10.0.0.5", False),
        ("redis://127.0.0.1:6379", False),
        ("redis://[::1]:6379", False),
        ("redis://localhost", False),
        ("unix:///run/redis.sock?db=0", False),
        ("redis-sentinel://a:1,b:2/0?master=m", False),
    ],
)
def test_open_to_the_network(url: str, is_open: bool) -> None:  # noqa: FBT001 - a table of examples
    assert is_open_to_the_network(url) is is_open


async def test_an_evicting_server_is_warned_about(redis: Redis, redis_url: str) -> None:
    with capture_logs() as quiet:
        await check_redis(redis, redis_url)
    assert quiet == []
    await redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with capture_logs() as logs:
            await check_redis(redis, redis_url)
    finally:
        await redis.config_set("maxmemory-policy", "noeviction")
    assert logs[0]["policy"] == "allkeys-lru"
