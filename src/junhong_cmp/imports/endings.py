"""How an import becomes final in PostgreSQL; whoever comes first decides."""

from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.imports.model import ImportStatus

_FINISH = """
    UPDATE import_task
    SET status = $2, result_key = $3, error = $4, waits_for = NULL, finished_at = now(), updated_at = now()
    WHERE id = $1 AND status IN ('pending', 'running')
    RETURNING true
"""
_CANCEL = """
    UPDATE import_task
    SET status = 'cancelled', waits_for = NULL, finished_at = now(), updated_at = now()
    WHERE id = $1 AND status IN ('pending', 'running')
    RETURNING true
"""
_ADD_RESULT = """
    UPDATE import_task SET result_key = $2, updated_at = now()
    WHERE id = $1 AND status = 'cancelled' AND result_key IS NULL
"""


async def finish_import(
    conn: Conn | Pool, import_id: int, *, result_key: str | None = None, error: str | None = None
) -> bool:
    """Make the import final, failed if there is an ``error``; False when it was final already."""
    status = ImportStatus.DONE if error is None else ImportStatus.FAILED
    return bool(await conn.fetchval(_FINISH, import_id, status, result_key, error))


async def cancel_import(conn: Conn | Pool, import_id: int) -> bool:
    """Make the import final as cancelled; False when it was final already.

    A run that is under way finds out with its next chunk. What it has imported stays.
    """
    return bool(await conn.fetchval(_CANCEL, import_id))


async def add_result(conn: Conn | Pool, import_id: int, result_key: str) -> None:
    """Give a cancelled import the result file of what was dealt with before."""
    await conn.execute(_ADD_RESULT, import_id, result_key)
