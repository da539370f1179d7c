from junhong_cmp.db.pool import Pool
from junhong_cmp.db.rows import execute_rows

INSERT = """
    INSERT INTO poll_error (task_type, account_id, code)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])
"""


async def test_rows_travel_as_columns(pool: Pool) -> None:
    async with pool.acquire() as conn:
        await execute_rows(conn, INSERT, [("a", 1, "x"), ("b", 2, "y")])
        await execute_rows(conn, INSERT, [])
        rows = await conn.fetch("SELECT task_type, account_id, code FROM poll_error ORDER BY 1")
    assert [tuple(row) for row in rows] == [("a", 1, "x"), ("b", 2, "y")]
