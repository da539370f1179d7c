from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.polling.plant import Plant, add_account, add_rule

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool


@pytest.fixture
async def account(pool: Pool) -> CarrierAccount:
    return await add_account(pool)


@pytest.fixture
async def plant(pool: Pool, postgres_dsn: str, redis: Redis, account: CarrierAccount) -> AsyncIterator[Plant]:
    """A plant with one account and an hourly rule for everything, its configuration read."""
    await add_rule(pool)
    plant = Plant(pool, postgres_dsn, redis)
    await plant.config.refresh()
    yield plant
    await plant.close()
