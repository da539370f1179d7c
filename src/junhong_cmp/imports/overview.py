"""Which imports there are."""

from typing import Final

from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.task_rows import IMPORT_COLUMNS, import_from_row

_RECENT: Final = f"SELECT {IMPORT_COLUMNS} FROM import_task ORDER BY id DESC LIMIT $1"  # noqa: S608 - constant


async def list_recent(conn: Conn | Pool, limit: int) -> list[ImportTask]:
    """Return the latest imports, the newest first."""
    found = [import_from_row(row) for row in await conn.fetch(_RECENT, limit)]
    return [task for task in found if task is not None]
