import asyncio
from pathlib import Path

import pytest
from tests.crowd import Statistics, watched_crowd
from tests.pgbouncer import PROGRAM, pgbouncer

from junhong_cmp.db.index_order import fetch_in_index_order
from junhong_cmp.db.pool import Pool, open_pool

SETTING = "SELECT current_setting('enable_sort')"
PAGE = "SELECT id FROM iot_card WHERE account_id = 1 AND id > $1 ORDER BY id LIMIT 50"


async def test_it_holds_for_one_statement(postgres_dsn: str) -> None:
    async with await open_pool(postgres_dsn, max_size=1) as pool:
        assert [tuple(row) for row in await fetch_in_index_order(pool, SETTING)] == [("off",)]
        assert await pool.fetchval(SETTING) == "on"


async def test_what_only_a_sort_can_answer_is_sorted(pool: Pool) -> None:
    rows = await fetch_in_index_order(pool, "SELECT n FROM unnest($1::int[]) AS n ORDER BY n", [3, 1, 2])
    assert [row["n"] for row in rows] == [1, 2, 3]


@pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")
async def test_a_session_lent_to_others_does_not_keep_it(postgres_dsn: str, data_folder: Path) -> None:
    async with (
        watched_crowd(postgres_dsn, Statistics.NONE),
        pgbouncer(postgres_dsn, data_folder) as url,
        await open_pool(url, max_size=20, pgbouncer=True) as pool,
    ):

        async def read(after: int) -> None:
            rows = await fetch_in_index_order(pool, PAGE, after)
            assert [row["id"] for row in rows] == list(range(after + 2, after + 102, 2))
            assert [tuple(row) for row in await fetch_in_index_order(pool, SETTING)] == [("off",)]
            assert await pool.fetchval(SETTING) == "on"

        await asyncio.gather(*(read(after) for after in range(0, 4000, 100)))
