from contextlib import aclosing

import asyncpg
from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.imports.model import RowResult, RowStatus
from junhong_cmp.imports.row_store import find_first_lines, list_latest_imported, record_rows, stream_rows

IMPORT = 1


@whatever_is_known
async def test_no_more_rows_are_read_than_are_asked_for(postgres_dsn: str, statistics: Statistics) -> None:
    async with watched_crowd(postgres_dsn, statistics, "import_row") as watch:
        assert await list_latest_imported(watch.pool, IMPORT, 50) == list(range(20_000, 19_900, -2))
        watch.assert_frugal(100)
        async with aclosing(stream_rows(watch.pool, IMPORT, page=100)) as pages:
            assert [row["line_no"] for row in await anext(pages)] == list(range(1, 101))
            assert [row["line_no"] for row in await anext(pages)] == list(range(101, 201))
        watch.assert_frugal(150)
        async with watch.pool.acquire() as conn:
            lines = await find_first_lines(conn, IMPORT, range(5000, 5100))
        assert lines == {number: number for number in range(5000, 5100)}
        watch.assert_frugal(200)  # of both imports


async def test_outcomes_are_kept_whole(pool: asyncpg.Pool) -> None:
    plain = RowResult(line_no=2, status=RowStatus.IMPORTED, value="1", card_id=7)
    refused = RowResult(line_no=3, status=RowStatus.REJECTED, value="2", reason_code="odd", reason="why")
    warned = RowResult(line_no=4, status=RowStatus.IMPORTED, value="3", card_id=8, warnings=("one", "two"))
    async with pool.acquire() as conn:
        await record_rows(conn, 1, [plain, refused])  # none of them is warned about
        await record_rows(conn, 2, [plain, refused, warned])
    rows = await pool.fetch("SELECT * FROM import_row ORDER BY task_id, line_no")
    quiet: list[tuple[object, ...]] = [
        (2, "imported", "1", 7, None, None, []),
        (3, "rejected", "2", None, "odd", "why", []),
    ]
    assert [tuple(row)[1:] for row in rows if row["task_id"] == 1] == quiet
    assert [tuple(row)[1:] for row in rows if row["task_id"] == 2] == [
        *quiet,
        (4, "imported", "3", 8, None, None, ["one", "two"]),
    ]


async def test_pages_pass_over_lines_without_rows(pool: asyncpg.Pool) -> None:
    lines = [2, 3, 11, 12, 13, 400]
    results = [RowResult(line_no=line, status=RowStatus.IMPORTED, value="") for line in lines]
    async with pool.acquire() as conn:
        await record_rows(conn, 1, results)
        await record_rows(conn, 2, results[:1])
    pages = [[row["line_no"] for row in page] async for page in stream_rows(pool, 1, page=5)]
    assert pages == [[2, 3], [11, 12, 13], [400]]
    assert [page async for page in stream_rows(pool, 3)] == []
