"""Outcomes of rows in PostgreSQL; the caller owns the transaction."""

from collections.abc import AsyncGenerator, Collection, Sequence
from operator import attrgetter
from typing import Final

from asyncpg import Record

from junhong_cmp.db.index_order import fetch_in_index_order
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.imports.model import RowResult

_PLAIN: Final = ("line_no", "status", "value", "card_id", "reason_code", "reason")
_WARNED: Final = (*_PLAIN, "warnings")
_STRETCH: Final = 250
"""Rows written or read at a time. Twice as many cost a tenth less to read and nothing less to write, and keep
whoever waits for the processor waiting for twice as long, there and here."""
# OFFSET 0 keeps the planner on the index by card: while the table has no statistics yet it would
# rather read all rows of the task for each card.
_FIRST_LINES = """
    SELECT met.card_id, min(r.line_no) AS line_no
    FROM unnest($2::bigint[]) AS met (card_id)
    CROSS JOIN LATERAL (
        SELECT task_id, line_no FROM import_row WHERE card_id = met.card_id OFFSET 0) AS r
    WHERE r.task_id = $1
    GROUP BY met.card_id
"""
# A page is bounded by its lines and not by a LIMIT: the rows have just been written, the statistics do not
# know of them, and the planner would sort all that are left for each page.
_PAGE = """
    SELECT line_no, status, value, reason, warnings FROM import_row
    WHERE task_id = $1 AND line_no >= $2 AND line_no < $3
    ORDER BY line_no
"""
_NEXT_LINE = "SELECT min(line_no) FROM import_row WHERE task_id = $1 AND line_no >= $2"
_LATEST = """
    SELECT card_id FROM import_row
    WHERE task_id = $1 AND status = 'imported' AND card_id IS NOT NULL
    ORDER BY line_no DESC
    LIMIT $2
"""


async def record_rows(conn: Conn, import_id: int, results: Sequence[RowResult]) -> None:
    """Keep the outcomes of a chunk's rows."""
    for start in range(0, len(results), _STRETCH):
        stretch = results[start : start + _STRETCH]
        # An array costs as much to encode as the rest of a row, an empty one too, which is the default.
        kept = _WARNED if any(result.warnings for result in stretch) else _PLAIN
        values_of = attrgetter(*kept)
        await conn.copy_records_to_table(
            "import_row",
            columns=("task_id", *kept),
            records=[(import_id, *values_of(result)) for result in stretch],
        )


async def find_first_lines(conn: Conn, import_id: int, card_ids: Collection[int]) -> dict[int, int]:
    """Return, for each of the cards met earlier in this import, the line where it was met first."""
    rows = await conn.fetch(_FIRST_LINES, import_id, list(card_ids))
    return {row["card_id"]: row["line_no"] for row in rows}


async def list_latest_imported(pool: Pool, import_id: int, limit: int) -> list[int]:
    """Return the ids of the cards that were imported last, at most ``limit``."""
    return [row["card_id"] for row in await fetch_in_index_order(pool, _LATEST, import_id, limit)]


async def stream_rows(pool: Pool, import_id: int, *, page: int = _STRETCH) -> AsyncGenerator[list[Record]]:
    """Yield the outcomes in the order of the file, those of at most ``page`` lines at a time.

    Each is what the result file shows of a row, in this order: line, status, value, reason, warnings. They
    are yielded as they were read: an object for each would cost more than all that is done with it.
    """
    first = 1
    async with pool.acquire() as conn:
        while True:
            rows = await conn.fetch(_PAGE, import_id, first, first + page)
            first += page
            if rows:
                yield rows
            elif (following := await conn.fetchval(_NEXT_LINE, import_id, first)) is not None:
                first = following
            else:
                return
