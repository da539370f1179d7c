"""Old figures and import rows, removed before they weigh the database down."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.index_order import keep_index_order
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

DEFAULT_KEEP: Final[Mapping[str, timedelta]] = {
    "poll_minute": timedelta(days=14),
    "poll_error": timedelta(days=30),
    "import_row": timedelta(days=90),
    "polling_pause": timedelta(days=7),
}
"""How long rows of each table are kept."""

# The oldest first, by an index: no chunk reads again what those before it have deleted, or what is too young.
_DELETE: Final[Mapping[str, str]] = {
    "poll_minute": """
        DELETE FROM poll_minute WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM poll_minute WHERE minute < $1 ORDER BY minute LIMIT $2))
    """,
    "poll_error": """
        DELETE FROM poll_error WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM poll_error WHERE last_at < $1 ORDER BY last_at LIMIT $2))
    """,
    "polling_pause": """
        DELETE FROM polling_pause WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM polling_pause WHERE paused_until < $1 LIMIT $2))
    """,
    "import_row": """
        DELETE FROM import_row WHERE ctid = ANY (ARRAY(
            SELECT r.ctid FROM import_task AS t CROSS JOIN LATERAL (
                SELECT ctid FROM import_row WHERE task_id = t.id ORDER BY line_no LIMIT $2) AS r
            WHERE t.finished_at < $1 LIMIT $2))
    """,
}


class DataCleanupHandler:
    """A data clean-up handler deletes old rows in chunks, each its own short transaction.

    Interrupted or run twice it does no harm: what is left is deleted the next time.
    """

    task_type = TaskType.DATA_CLEANUP

    def __init__(
        self,
        pool: Pool,
        *,
        keep: Mapping[str, timedelta] = DEFAULT_KEEP,
        chunk: int = 5000,
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._keep = keep
        self._chunk = chunk
        self._clock = clock if clock is not None else SystemClock()

    async def process_task(self, task: ProcessingTask) -> None:
        """Delete what is older than its table's keeping time; ends early when the server stops."""
        deleted: dict[str, int] = {}
        for table, keep in self._keep.items():
            deleted[table] = await self._clean(table, keep, task)
        log.info("历史数据清理完成", **deleted)

    async def _clean(self, table: str, keep: timedelta, task: ProcessingTask) -> int:
        before, deleted = self._clock.now() - keep, 0
        while not task.draining.is_set():
            count = await self._delete(table, before)
            deleted += count
            if count < self._chunk:
                break
        return deleted

    async def _delete(self, table: str, before: datetime) -> int:
        async with self._pool.acquire() as conn, conn.transaction():
            await keep_index_order(conn)
            status = await conn.execute(_DELETE[table], before, self._chunk)
        return int(status.rpartition(" ")[2])
