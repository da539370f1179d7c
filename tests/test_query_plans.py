"""The tool that watches plans sees what it is to see: a page that is read is not one that sorts the table."""

import pytest
from tests.crowd import CROWDED, ROWS, Statistics, gather_crowd, watched_crowd
from tests.query_plans import watched_pool

PAGE = "SELECT id FROM iot_card WHERE account_id = $1 AND id > 0 ORDER BY id LIMIT 100"


async def test_it_tells_a_page_from_a_sort_of_the_table(postgres_dsn: str) -> None:
    async with watched_crowd(postgres_dsn, Statistics.NONE) as watch:
        async with watch.pool.acquire() as conn, conn.transaction():
            await conn.execute("SET LOCAL enable_sort = off")
            assert len(await conn.fetch(PAGE, CROWDED)) == 100
        watch.assert_frugal(200)
        await watch.pool.fetch(PAGE, CROWDED)
        with pytest.raises(
            AssertionError, match=r"more than 200 rows touched:\nSELECT id[^\n]*\nLimit: 100\n"
        ):
            watch.assert_frugal(200)
        with pytest.raises(AssertionError, match="no statement ran"):
            watch.assert_frugal(200)


async def test_rows_thrown_away_and_read_again_are_touched_as_well(postgres_dsn: str) -> None:
    async with watched_pool(postgres_dsn) as watch:
        await watch.pool.execute("SELECT 1 FROM generate_series(1, 300) AS n WHERE n < 0")
        assert [plan.most_rows for plan in watch.plans] == [300]
        watch.plans.clear()
        await watch.pool.execute(
            "SELECT 1 FROM generate_series(1, 20) AS n, LATERAL (SELECT FROM generate_series(1, n) OFFSET 0)"
        )
        assert [plan.most_rows for plan in watch.plans] == [210]


async def test_the_crowd_is_as_unknown_as_it_should_be(postgres_dsn: str) -> None:
    known = "SELECT reltuples FROM pg_class WHERE relname = 'iot_card'"
    async with watched_pool(postgres_dsn) as watch:
        await gather_crowd(watch.pool, Statistics.OLD)
        assert await watch.pool.fetchval(known) == 1
        await watch.pool.execute("ANALYZE iot_card")
        assert await watch.pool.fetchval(known) == ROWS
