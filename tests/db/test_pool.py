from datetime import timedelta

import asyncpg
import pytest

from junhong_cmp.db.pool import Pool, open_pool


async def test_sessions_have_limits_and_speak_utc(postgres_dsn: str) -> None:
    pool = await open_pool(
        postgres_dsn, statement_timeout=timedelta(seconds=7), application_name="junhong-test"
    )
    async with pool, pool.acquire() as conn:
        settings = {
            name: await conn.fetchval(f"SHOW {name}")
            for name in ("statement_timeout", "lock_timeout", "timezone", "search_path", "application_name")
        }
        idle = await conn.fetchval("SHOW idle_in_transaction_session_timeout")
    assert settings == {
        "statement_timeout": "7s",
        "lock_timeout": "7s",
        "timezone": "UTC",
        "search_path": "public",
        "application_name": "junhong-test",
    }
    assert idle == "15s"


async def test_a_slow_statement_ends(postgres_dsn: str) -> None:
    pool = await open_pool(postgres_dsn, statement_timeout=timedelta(milliseconds=50))
    async with pool:
        with pytest.raises(asyncpg.QueryCanceledError):
            await pool.fetchval("SELECT pg_sleep(5)")


async def test_jsonb_is_python_values_both_ways(pool: Pool) -> None:
    value = {"a": [1, None, "中"], "b": {"c": 1.5}}
    assert await pool.fetchval("SELECT $1::jsonb", value) == value


async def test_a_connection_given_back_inside_a_transaction_is_rolled_back(postgres_dsn: str) -> None:
    async with await open_pool(postgres_dsn, max_size=1) as pool:
        conn = await pool.acquire()
        await conn.execute("BEGIN")
        await conn.execute("INSERT INTO carrier_account (code, carrier) VALUES ('lost', 'cmcc')")
        await pool.release(conn)
        async with pool.acquire() as again:
            assert not again.is_in_transaction()
            assert await again.fetchval("SELECT count(*) FROM carrier_account") == 0


async def test_behind_pgbouncer_nothing_belongs_to_the_session(postgres_dsn: str) -> None:
    async with await open_pool(postgres_dsn, pgbouncer=True) as pool, pool.acquire() as conn:
        assert await conn.fetchval("SHOW statement_timeout") == "0"
        assert await conn.fetchval("SELECT $1::jsonb", [1]) == [1]
        assert await conn.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
