import pytest

from junhong_cmp.db.pool import Pool
from junhong_cmp.db.schema import REQUIRED_VERSION, check_schema, current_version
from junhong_cmp.errors import ExitCode, SchemaOutdatedError


async def test_a_migrated_database_passes(pool: Pool) -> None:
    async with pool.acquire() as conn:
        await check_schema(conn)
        assert await current_version(conn) == REQUIRED_VERSION


async def test_a_newer_schema_passes_for_rolling_upgrades(pool: Pool) -> None:
    await pool.execute("UPDATE alembic_version SET version_num = '9999'")
    async with pool.acquire() as conn:
        await check_schema(conn)


async def test_an_older_schema_is_named_with_the_remedy(pool: Pool) -> None:
    await pool.execute("UPDATE alembic_version SET version_num = '0001'")
    async with pool.acquire() as conn:
        with pytest.raises(SchemaOutdatedError) as caught:
            await check_schema(conn)
    for part in ("0001", REQUIRED_VERSION, "junhong migrate"):
        assert part in str(caught.value)
    assert caught.value.exit_code is ExitCode.CONFIGURATION


async def test_an_empty_database_is_told_apart_without_ending_the_transaction(pool: Pool) -> None:
    await pool.execute("DROP TABLE alembic_version")
    async with pool.acquire() as conn, conn.transaction():
        with pytest.raises(SchemaOutdatedError, match="空库"):
            await check_schema(conn)
        assert await conn.fetchval("SELECT 1") == 1
