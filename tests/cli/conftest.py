"""What several test files of the command line are given."""

from pathlib import Path

import asyncpg
import pytest
from tests.cli.console import Console
from tests.cli.import_counter import Counter

from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier


@pytest.fixture
async def counter(pool: asyncpg.Pool, postgres_dsn: str, redis_url: str, tmp_path: Path) -> Counter:
    async with pool.acquire() as conn:
        await record_account(conn, NewAccount(code="demo", carrier=Carrier.CMCC))
    env = {
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_STORAGE_URL": f"file://{tmp_path}/objects",
    }
    return Counter(pool, env, tmp_path)


@pytest.fixture
def junhong(redis_url: str) -> Console:
    """Any command that needs Redis only; PostgreSQL is never asked."""
    return Console(None, redis_url, "postgresql://u@127.0.0.1:1/db")
