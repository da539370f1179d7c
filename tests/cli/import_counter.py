"""``junhong import`` as an operator types it, with a worker at hand or not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
from tests.imports.card_files import Announcements, delivery
from tests.waiting import wait_until
from tests.worker_process import COMMAND, environment

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.asynq.keys import QueueKeys
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.store import list_unfinished
from junhong_cmp.polling.tasks import IMPORT_QUEUE
from junhong_cmp.storage.store import open_storage

# Whatever the command asks the database after it has enqueued the import is how the import stands.
_LOOKS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'junhong-import' AND state_change > $1
"""


class Ended:
    """What a command said and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Counter:
    """Runs ``junhong import`` against the test's services; a worker may be at hand or not."""

    def __init__(self, pool: asyncpg.Pool, env: dict[str, str], folder: Path) -> None:
        self.pool, self.env, self.folder = pool, env, folder

    async def hand_in(self, data: bytes | None, *options: str, name: str = "卡清单.csv") -> Ended:
        path = self.folder / name
        if data is not None:
            await asyncio.to_thread(path.write_bytes, data)
        return await self.run("import", str(path), *options)

    async def run(self, *arguments: str) -> Ended:
        return await self.end(await self.start(*arguments))

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            env=environment(**self.env),
            cwd=self.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def end(self, process: asyncio.subprocess.Process) -> Ended:
        out, err = await process.communicate()
        return Ended(process.returncode or 0, out.decode(), err.decode())

    async def start_and_submit(self, path: Path) -> asyncio.subprocess.Process:
        """Return the command once it waits for a worker that is not there."""
        process = await self.start("import", str(path), "-a", "demo")
        await wait_until(self._enqueued, description="the import is handed in")
        since = await self.pool.fetchval("SELECT clock_timestamp()")
        await wait_until(lambda: self.pool.fetchval(_LOOKS, since), description="the command asks how it is")
        return process

    async def _enqueued(self) -> int:
        redis = open_redis(self.env["JUNHONG_REDIS_URL"])
        try:
            return int(await redis.execute_command("LLEN", QueueKeys(IMPORT_QUEUE).pending))
        finally:
            await redis.aclose()

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """Import what is handed in, as a worker's queue server would have it done."""
        storage = open_storage(self.env["JUNHONG_STORAGE_URL"])
        handler = CardImportHandler(self.pool, storage, Announcements())

        async def work() -> None:
            await wait_until(lambda: list_unfinished(self.pool), description="an import is handed in")
            for import_id in await list_unfinished(self.pool):
                with contextlib.suppress(SkipRetry):
                    await handler.process_task(delivery(import_id))

        task = asyncio.create_task(work())
        yield
        await task
