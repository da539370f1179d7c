"""What an import tells beside its counts: what is odd about its file, and what it waits for."""

from collections.abc import Collection, Sequence

from junhong_cmp.db.pool import Conn, Pool

_NOTE = "UPDATE import_task SET notes = $2, file_lines = coalesce($3, file_lines) WHERE id = $1"
_WAIT = """
    WITH known AS (
        SELECT id, waits_for FROM import_task
        WHERE id = $1 AND status IN ('pending', 'running') FOR UPDATE)
    UPDATE import_task AS t SET waits_for = $2 FROM known WHERE t.id = known.id
    RETURNING split_part(coalesce(known.waits_for, ''), '：', 1) <> split_part($2, '：', 1)
"""
_STALL = """
    UPDATE import_task SET waits_for = $2
    WHERE id = ANY ($1::bigint[]) AND status IN ('pending', 'running') AND waits_for IS NULL
"""


async def note_file(
    conn: Conn | Pool, import_id: int, notes: Sequence[str], lines: int | None = None
) -> None:
    """Keep what a look at the file as a whole told: oddities, and about how many lines it has."""
    await conn.execute(_NOTE, import_id, list(notes), lines)


async def note_wait(conn: Conn | Pool, import_id: int, reason: str) -> bool:
    """Keep what the import waits for, until its next progress.

    False if it is final, or waits for that already: what a reason is about stands before its colon, and
    what follows may tell of the last attempt.
    """
    return bool(await conn.fetchval(_WAIT, import_id, reason))


async def note_stall(conn: Conn | Pool, import_ids: Collection[int], reason: str) -> None:
    """Keep why these imports may stand still, unless it is known what they wait for."""
    await conn.execute(_STALL, list(import_ids), reason)
