"""The handler of ``platform:import_redrive``: imports outlive a lost queue."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.task import EnqueueStatus
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS, is_outage
from junhong_cmp.imports.remarks import note_stall
from junhong_cmp.imports.store import list_unfinished
from junhong_cmp.imports.tasks import message_for

log = structlog.stdlib.get_logger(__name__)


_STALLED_AFTER: Final = timedelta(hours=1)
_STALLED: Final = (
    "一小时没有进展：任务可能已归档，或没有 Worker 消费导入队列；见 junhong queue ls 与 junhong task ls"
)


class ImportRedriveHandler:
    """An import re-drive handler puts unfinished imports back into the queue if they are not in it.

    PostgreSQL knows the imports, Redis only the tasks: after a flushed or failed-over Redis, or a crash
    between the record and the queue, the task is missing. Its id makes enqueuing it twice impossible.
    """

    def __init__(self, pool: Pool, client: Client) -> None:
        self._pool = pool
        self._client = client
        self._reported: set[int] = set()

    async def process_task(self, task: ProcessingTask) -> None:  # noqa: ARG002 - the task carries nothing
        """Enqueue what is missing; while PostgreSQL is away the next firing has to do."""
        try:
            await self.redrive()
        except DATABASE_FAULTS as error:
            if not is_outage(error):
                raise
            log.warning("数据库不可用，下次再检查未完成的导入", error=type(error).__name__)

    async def redrive(self) -> list[int]:
        """Enqueue what is missing and return the ids of those imports."""
        unfinished = await list_unfinished(self._pool)
        results = await self._client.enqueue_many([message_for(import_id) for import_id in unfinished])
        missing = [
            import_id
            for import_id, result in zip(unfinished, results, strict=True)
            if result.status is EnqueueStatus.ENQUEUED
        ]
        if missing:
            log.warning("导入任务不在队列中，已重新入队", import_ids=missing)
        await self._report_stalled({one: idle for one, idle in unfinished.items() if one not in missing})
        return missing

    async def _report_stalled(self, queued: Mapping[int, timedelta]) -> None:
        """Say once that an import does not move though its task is in the queue, waiting or archived."""
        stalled = {import_id for import_id, idle in queued.items() if idle >= _STALLED_AFTER}
        if fresh := sorted(stalled - self._reported):
            log.error("导入长时间没有进展，请检查导入队列与归档任务", import_ids=fresh)
            await note_stall(self._pool, fresh, _STALLED)
        self._reported = stalled
