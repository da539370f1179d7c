"""Behind PgBouncer in transaction mode no statement meets another's, whatever session it is lent."""

import asyncio
from pathlib import Path

import pytest
from tests.pgbouncer import PROGRAM, pgbouncer

from junhong_cmp.db.pool import Pool, open_pool

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")

CALLERS = 20
ROUNDS = 25


async def test_statements_of_many_callers_do_not_mix(postgres_dsn: str, data_folder: Path) -> None:
    async with (
        pgbouncer(postgres_dsn, data_folder) as url,
        await open_pool(url, max_size=CALLERS, pgbouncer=True) as pool,
    ):
        await asyncio.gather(*(_ask_in_all_ways(pool, caller) for caller in range(CALLERS)))


async def _ask_in_all_ways(pool: Pool, caller: int) -> None:
    name = f"account-{caller}"
    for number in range(ROUNDS):
        async with pool.acquire() as conn:
            assert await conn.fetchval("SELECT $1::bigint + $2::bigint", caller, number) == caller + number
            row = await conn.fetchrow("SELECT $1::jsonb, $2::text", [number], name)
            assert row is not None
            assert tuple(row) == ([number], name)
            rows = await conn.fetch("SELECT unnest($1::bigint[])", [caller, number])
            assert [row[0] for row in rows] == [caller, number]
            await conn.execute("SELECT set_config('junhong.caller', $1, true)", name)
        async with pool.acquire() as conn, conn.transaction():
            await conn.execute("SELECT set_config('junhong.caller', $1, true)", name)
            assert await conn.fetchval("SELECT current_setting('junhong.caller')") == name
    async with pool.acquire() as conn:
        insert = "INSERT INTO carrier_account (code, carrier) VALUES ($1, 'cmcc')"
        await conn.executemany(insert, [(name,), (f"{name}-b",)])
        count = "SELECT count(*) FROM carrier_account WHERE code LIKE $1 || '%'"
        assert await conn.fetchval(count, f"{name}-") == 1
