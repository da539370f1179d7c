"""One import from its bytes to its end, as a worker has it."""

import asyncpg
import pytest
from tests.imports.card_files import Announcements, PutFile, delivery

from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import
from junhong_cmp.storage.store import Storage


class ImportRuns:
    """Imports files, or sees them refused once and for all."""

    def __init__(self, pool: asyncpg.Pool, storage: Storage, put_file: PutFile) -> None:
        self._pool, self._put_file = pool, put_file
        self._handler = CardImportHandler(pool, storage, Announcements())

    async def result_of(self, data: bytes) -> ImportTask:
        """Import a file to its end."""
        task = await self._put_file(data)
        await self._handler.process_task(delivery(task.id))
        return await self._now(task)

    async def refusal_of(self, data: bytes) -> str:
        """Return why the file is refused: at once, for good, and without another attempt."""
        return await self.refusal(await self._put_file(data))

    async def refusal(self, task: ImportTask) -> str:
        """Return why an import that was handed in is refused."""
        with pytest.raises(SkipRetry):
            await self._handler.process_task(delivery(task.id))
        failed = await self._now(task)
        assert failed.status is ImportStatus.FAILED
        assert await self._pool.fetchval("SELECT count(*) FROM iot_card") == 0
        await self._handler.process_task(delivery(task.id))  # a second delivery finds it final
        assert await self._now(task) == failed
        return failed.error or ""

    async def _now(self, task: ImportTask) -> ImportTask:
        current = await find_import(self._pool, task.id)
        assert current is not None
        return current
