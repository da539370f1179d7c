"""Import jobs in PostgreSQL; the caller owns the transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final

import asyncpg

from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.imports.model import ImportStatus, ImportTask, RowResult, RowStatus

_COLUMNS: Final = ", ".join(field.name for field in fields(ImportTask))
_FIND = f"SELECT {_COLUMNS} FROM import_task WHERE id = $1"  # noqa: S608 - constant column list
_LOCK = f"{_FIND} FOR UPDATE"
_FIND_BY_FILE = f"""
    SELECT {_COLUMNS} FROM import_task WHERE account_id = $1 AND file_sha256 = $2
"""  # noqa: S608 - constant column list
_FORGET_FAILED = "DELETE FROM import_task WHERE account_id = $1 AND file_sha256 = $2 AND status = 'failed'"
_CREATE = f"""
    INSERT INTO import_task (account_id, file_name, file_key, file_sha256, file_bytes)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (account_id, file_sha256) DO NOTHING
    RETURNING {_COLUMNS}
"""  # noqa: S608 - constant column list
_START = """
    UPDATE import_task
    SET status = 'running', started_at = coalesce(started_at, now()), updated_at = now()
    WHERE id = $1 AND status IN ('pending', 'running')
"""
_ADVANCE = """
    UPDATE import_task
    SET next_line = $2, total = total + $3, imported = imported + $4, skipped = skipped + $5,
        rejected = rejected + $6, warned = warned + $7, updated_at = now()
    WHERE id = $1
"""
_FINISH = """
    UPDATE import_task
    SET status = $2, result_key = $3, error = $4, finished_at = now(), updated_at = now()
    WHERE id = $1 AND status IN ('pending', 'running')
    RETURNING true
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


async def find_import(conn: Conn | Pool, import_id: int) -> ImportTask | None:
    """Return the import, or None."""
    return _from_row(await conn.fetchrow(_FIND, import_id))


async def lock_import(conn: Conn, import_id: int) -> ImportTask | None:
    """Return the import as it is now and keep everybody else from changing it until the transaction ends."""
    return _from_row(await conn.fetchrow(_LOCK, import_id))


async def create_import(conn: Conn, new: NewImport) -> ImportTask:
    """Record an import, or return the one that this file has already with this account.

    A failed one gives way to a new one, under a new id: its task in the queue may be archived, and
    an archived task's id can't be used again.
    """
    async with conn.transaction():
        await conn.execute(_FORGET_FAILED, new.account_id, new.file_sha256)
        created = await conn.fetchrow(
            _CREATE, new.account_id, new.file_name, new.file_key, new.file_sha256, new.file_bytes
        )
        task = _from_row(created or await conn.fetchrow(_FIND_BY_FILE, new.account_id, new.file_sha256))
    if task is None:  # the one in the way was deleted between the two statements
        return await create_import(conn, new)
    return task


async def start_import(conn: Conn, import_id: int) -> ImportTask | None:
    """Mark the import as running unless it is final, and return it as it is then."""
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


async def finish_import(
    conn: Conn | Pool, import_id: int, *, result_key: str | None = None, error: str | None = None
) -> bool:
    """Make the import final, failed if there is an ``error``; False when it was final already."""
    status = ImportStatus.DONE if error is None else ImportStatus.FAILED
    return bool(await conn.fetchval(_FINISH, import_id, status, result_key, error))


async def list_unfinished(conn: Conn | Pool) -> dict[int, timedelta]:
    """Return the ids of imports that are not final, the oldest first, and how long each stands still."""
    return {row["id"]: row["idle"] for row in await conn.fetch(_UNFINISHED)}


def _from_row(row: asyncpg.Record | None) -> ImportTask | None:
    if row is None:
        return None
    return ImportTask(**{**row, "status": ImportStatus(row["status"])})
