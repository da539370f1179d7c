"""Import jobs in PostgreSQL; the caller owns the transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.imports.model import ImportTask, RowResult, RowStatus
from junhong_cmp.imports.task_rows import IMPORT_COLUMNS, import_from_row

_FIND = f"SELECT {IMPORT_COLUMNS} FROM import_task WHERE id = $1"  # noqa: S608 - constant column list
_LOCK = f"{_FIND} FOR UPDATE"
_FIND_BY_FILE = f"""
    SELECT {IMPORT_COLUMNS} FROM import_task WHERE account_id = $1 AND file_sha256 = $2 AND sheet = $3
"""  # noqa: S608 - constant column list
_FORGET_FAILED = """
    WITH forgotten AS (
        DELETE FROM import_task
        WHERE account_id = $1 AND file_sha256 = $2 AND sheet = $3 AND status IN ('failed', 'cancelled')
        RETURNING id)
    DELETE FROM import_row WHERE task_id IN (SELECT id FROM forgotten)
"""
_CREATE = f"""
    INSERT INTO import_task (account_id, file_sha256, sheet, file_name, file_key, file_bytes, file_lines)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (account_id, file_sha256, sheet) DO NOTHING
    RETURNING {IMPORT_COLUMNS}
"""  # noqa: S608 - constant column list
_START = """
    UPDATE import_task
    SET status = 'running', started_at = coalesce(started_at, now()),
        updated_at = CASE status WHEN 'pending' THEN now() ELSE updated_at END
    WHERE id = $1 AND status IN ('pending', 'running')
"""
_ADVANCE = """
    UPDATE import_task
    SET next_line = $2, total = total + $3, imported = imported + $4, skipped = skipped + $5,
        rejected = rejected + $6, warned = warned + $7, waits_for = NULL, updated_at = now()
    WHERE id = $1
"""
_UNFINISHED = """
    SELECT id, now() - updated_at AS idle FROM import_task
    WHERE status IN ('pending', 'running')
    ORDER BY id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewImport:
    """A file that is in storage and is to be imported for an account."""

    account_id: int
    file_name: str
    file_key: str
    file_sha256: str
    file_bytes: int
    file_lines: int | None = None
    sheet: str = ""


async def find_import(conn: Conn | Pool, import_id: int) -> ImportTask | None:
    """Return the import, or None."""
    return import_from_row(await conn.fetchrow(_FIND, import_id))


async def lock_import(conn: Conn, import_id: int) -> ImportTask | None:
    """Return the import as it is now and keep everybody else from changing it until the transaction ends."""
    return import_from_row(await conn.fetchrow(_LOCK, import_id))


async def create_import(conn: Conn, new: NewImport) -> ImportTask:
    """Record an import, or return the one that this file has already with this account.

    A failed or cancelled one gives way to a new one, under a new id: its task in the queue may be
    archived, and an archived task's id can't be used again.
    """
    file = (new.account_id, new.file_sha256, new.sheet)
    async with conn.transaction():
        await conn.execute(_FORGET_FAILED, *file)
        created = await conn.fetchrow(
            _CREATE, *file, new.file_name, new.file_key, new.file_bytes, new.file_lines
        )
        task = import_from_row(created or await conn.fetchrow(_FIND_BY_FILE, *file))
    if task is None:  # the one in the way was deleted between the two statements
        return await create_import(conn, new)
    return task


async def start_import(conn: Conn, import_id: int) -> ImportTask | None:
    """Mark the import as running unless it is final, and return it as it is then.

    Beginning again is no progress: one that only ever begins stands still.
    """
    await conn.execute(_START, import_id)
    return await find_import(conn, import_id)


async def advance_import(conn: Conn, import_id: int, next_line: int, results: Sequence[RowResult]) -> None:
    """Count the outcomes of a chunk and remember where the next one begins."""
    counts = [
        sum(result.status is status for result in results)
        for status in (RowStatus.IMPORTED, RowStatus.SKIPPED, RowStatus.REJECTED)
    ]
    warned = sum(bool(result.warnings) for result in results)
    await conn.execute(_ADVANCE, import_id, next_line, len(results), *counts, warned)


async def list_unfinished(conn: Conn | Pool) -> dict[int, timedelta]:
    """Return the ids of imports that are not final, the oldest first, and how long each stands still."""
    return {row["id"]: row["idle"] for row in await conn.fetch(_UNFINISHED)}
