"""Imports by a real worker: how long they take, what they hold, and what other tasks notice of them."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from import_bench.memory import MemoryWatch
from import_bench.probe_record import p99, read_waits
from import_bench.probes import Probes
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.cards.account_store import NewAccount, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.db.migrate import migrate
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.embedded.services import EmbeddedServices
from junhong_cmp.imports.model import ImportStatus
from junhong_cmp.imports.store import find_import
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.storage.store import open_storage

_IDLE_S: Final = 10
_SETTLE_S: Final = 3
_STOP_S: Final = 20
_LOOK_S: Final = 0.2
_COUNT: Final = """
import time
end = time.monotonic() + 60
while time.monotonic() < end:
    pass
"""
_WORKER: Final = "worker"
_BYSTANDER: Final = "bystander"
_RULE: Final = "INSERT INTO polling_config (name, priority, intervals) VALUES ('bench', 100, $1)"


class Waits(NamedTuple):
    """The p99 of what probes waited at the same time, in seconds: in the worker, and in the bystander."""

    worker: float
    bystander: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One import: seconds from handing the file in to its end, what probes waited, and the most memory."""

    rows: int
    seconds: float
    waits: Waits
    peak_mb: float


class WorkerRun:
    """A worker run has a worker and a bystander at hand and measures what an import does to both."""

    def __init__(self, services: EmbeddedServices, pool: Pool, folder: Path, pid: int) -> None:
        self._pool = pool
        self._pid = pid
        self._folder = folder
        self._storage = open_storage((folder / "objects").as_uri())
        self._client = Client(open_redis(services.redis_url, pool_size=2))

    async def idle(self) -> Waits:
        """Return what probes wait while nothing is imported."""
        async with Probes(self._client):
            await asyncio.sleep(_SETTLE_S)
            since = time.time()
            await asyncio.sleep(_IDLE_S)
        return self._waits(since)

    async def busy(self) -> Waits:
        """Return what probes wait while a program that has nothing to do with ours uses one processor."""
        # In a session of its own, as any other program would be.
        count = await asyncio.create_subprocess_exec(sys.executable, "-c", _COUNT, start_new_session=True)
        try:
            return await self.idle()
        finally:
            count.kill()
            await count.wait()

    async def import_file(self, path: Path) -> Measured:
        """Import a file and return what that took."""
        async with Probes(self._client), MemoryWatch(self._pid) as memory:
            since, began = time.time(), time.perf_counter()
            task = await submit_import(
                self._pool, self._storage, self._client, account_code="bench", path=path
            )
            while not task.status.is_final:
                await asyncio.sleep(_LOOK_S)
                task = await find_import(self._pool, task.id) or task
            seconds, waits = time.perf_counter() - began, self._waits(since)
        if task.status is not ImportStatus.DONE or task.imported != task.total:
            raise RuntimeError(f"{path.name}: {task.status} {task.imported}/{task.total} {task.error}")
        return Measured(task.total, seconds, waits, memory.peak_mb)

    def _waits(self, since: float) -> Waits:
        until = time.time()
        return Waits(*(p99(read_waits(self._folder / name, since, until)) for name in (_WORKER, _BYSTANDER)))


async def prepare(dsn: str) -> None:
    """Bring the schema up, with one account whose cards are polled hourly."""
    await migrate(dsn)
    pool = await open_pool(dsn, max_size=1)
    async with pool.acquire() as conn:
        await record_account(conn, NewAccount(code="bench", carrier=Carrier.CMCC))
        await conn.execute(_RULE, {kind: {"interval_s": 3600} for kind in ("carddata", "cardstatus")})
    await pool.close()


@asynccontextmanager
async def worker_run(services: EmbeddedServices, folder: Path) -> AsyncGenerator[WorkerRun, None]:
    """Run a worker of all roles and a bystander beside the block and stop them afterwards."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUNHONG_")},
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "JUNHONG_REDIS_URL": services.redis_url,
        "JUNHONG_POSTGRES_DSN": services.postgres_dsn,
        "JUNHONG_STORAGE_URL": (folder / "objects").as_uri(),
        "JUNHONG_LOG_LEVEL": "warning",
    }
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(_process(folder, _WORKER, "worker", environment))
        await stack.enter_async_context(_process(folder, _BYSTANDER, services.redis_url, environment))
        pool = await open_pool(services.postgres_dsn, max_size=2)
        stack.push_async_callback(pool.close)
        yield WorkerRun(services, pool, folder, worker.pid)


@asynccontextmanager
async def _process(
    folder: Path, name: str, argument: str, environment: Mapping[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """Run one of this package's programs, which notes its probes under its name."""
    words = [sys.executable, "-m", f"import_bench.{name}", str(folder / name), argument]
    with (folder / f"{name}.log").open("wb") as log:
        # Each in a session of its own, as under any supervisor: Linux may share the processors by session.
        process = await asyncio.create_subprocess_exec(
            *words, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
