from contextlib import aclosing

from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.imports.row_store import find_first_lines, list_latest_imported, stream_rows

IMPORT = 1


@whatever_is_known
async def test_no_more_rows_are_read_than_are_asked_for(postgres_dsn: str, statistics: Statistics) -> None:
    async with watched_crowd(postgres_dsn, statistics, "import_row") as watch:
        assert await list_latest_imported(watch.pool, IMPORT, 50) == list(range(20_000, 19_900, -2))
        watch.assert_frugal(100)
        async with aclosing(stream_rows(watch.pool, IMPORT, page=100)) as pages:
            assert [row.line_no for row in await anext(pages)] == list(range(1, 101))
            assert [row.line_no for row in await anext(pages)] == list(range(101, 201))
        watch.assert_frugal(150)
        async with watch.pool.acquire() as conn:
            lines = await find_first_lines(conn, IMPORT, range(5000, 5100))
        assert lines == {number: number for number in range(5000, 5100)}
        watch.assert_frugal(200)  # of both imports
