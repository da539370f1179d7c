"""The scenarios' platform, for playing rough on."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.scenarios.platform import Platform


@pytest.fixture
async def platform(
    redis: Redis, redis_url: str, pool: asyncpg.Pool, postgres_dsn: str, data_folder: Path
) -> AsyncIterator[Platform]:
    async with Platform(redis, redis_url, pool, postgres_dsn, data_folder) as platform:
        yield platform
