"""The handler of ``platform:import_redrive``: imports outlive a lost queue."""

import structlog

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.task import EnqueueStatus
from junhong_cmp.db.pool import Pool
from junhong_cmp.imports.store import list_unfinished
from junhong_cmp.imports.tasks import message_for

log = structlog.stdlib.get_logger(__name__)


class ImportRedriveHandler:
    """An import re-drive handler puts unfinished imports back into the queue if they are not in it.

    PostgreSQL knows the imports, Redis only the tasks: after a flushed or failed-over Redis, or a crash
    between the record and the queue, the task is missing. Its id makes enqueuing it twice impossible.
    """

    def __init__(self, pool: Pool, client: Client) -> None:
        self._pool = pool
        self._client = client

    async def process_task(self, task: ProcessingTask) -> None:  # noqa: ARG002 - the task carries nothing
        """Enqueue what is missing."""
        await self.redrive()

    async def redrive(self) -> list[int]:
        """Enqueue what is missing and return the ids of those imports."""
        ids = await list_unfinished(self._pool)
        results = await self._client.enqueue_many([message_for(import_id) for import_id in ids])
        missing = [
            import_id
            for import_id, result in zip(ids, results, strict=True)
            if result.status is EnqueueStatus.ENQUEUED
        ]
        if missing:
            log.warning("导入任务不在队列中，已重新入队", import_ids=missing)
        return missing
