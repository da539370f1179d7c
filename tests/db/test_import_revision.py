"""Going back before revision 0008 with imports that only it knows."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.db.empty_database import EmptyDatabase

from junhong_cmp.db.migrate import migrate, migrate_down

ROWS = """
    INSERT INTO carrier_account (code, carrier) VALUES ('a', 'cmcc');
    INSERT INTO import_task (account_id, file_name, file_key, file_sha256, file_bytes, status, sheet)
    SELECT 1, 'f', 'k', lpad(n::text, 64, '0'), 1, (ARRAY['done', 'cancelled', 'done'])[n],
        (ARRAY['', '', '二月'])[n]
    FROM generate_series(1, 3) AS n;
    INSERT INTO import_row (task_id, line_no, status, card_id)
    SELECT t.id, 2, 'imported', 4711 FROM import_task AS t;
    INSERT INTO import_row (task_id, line_no, status) VALUES (99, 2, 'rejected');
"""


@pytest.fixture
async def empty(postgres_dsn: str) -> AsyncIterator[EmptyDatabase]:
    async with EmptyDatabase.beside(postgres_dsn) as database:
        yield database


async def test_what_the_older_schema_cannot_hold_is_turned_into_what_it_can(empty: EmptyDatabase) -> None:
    await migrate(empty.dsn)
    await empty.execute(ROWS)
    await migrate_down(empty.dsn, "0007")
    conn = await asyncpg.connect(empty.dsn)
    tasks = [tuple(row) for row in await conn.fetch("SELECT status, error FROM import_task ORDER BY id")]
    rows = [tuple(row) for row in await conn.fetch("SELECT task_id, card_id FROM import_row ORDER BY 1")]
    await conn.close()
    assert tasks == [("done", None), ("failed", "已取消")]
    assert rows == [(1, None), (2, None)]
    await migrate(empty.dsn)
