"""Imports by a real worker: how long they take, what they hold, and what other tasks notice of them."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from import_bench.memory import MemoryWatch
from import_bench.probes import Probes, p99, waits
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
_LOOK_S: Final = 0.1
_RULE: Final = "INSERT INTO polling_config (name, priority, intervals) VALUES ('bench', 100, $1)"


@dataclass(frozen=True, slots=True)
class Measured:
    """One import: seconds from handing the file in to its end, and the p99 of other tasks' waits."""

    seconds: float
    p99_s: float
    peak_mb: float


class WorkerRun:
    """A worker run has a worker at hand and measures what it does."""

    def __init__(self, services: EmbeddedServices, pool: Pool, folder: Path, pid: int) -> None:
        self._pool = pool
        self._pid = pid
        self._record = folder / "probes"
        self._storage = open_storage((folder / "objects").as_uri())
        self._client = Client(open_redis(services.redis_url, pool_size=2))

    async def idle(self) -> float:
        """Return the p99 of the waits of tasks while nothing is imported."""
        async with Probes(self._client):
            await asyncio.sleep(_SETTLE_S)
            since = time.time()
            await asyncio.sleep(_IDLE_S)
        return p99(waits(self._record, since, time.time()))

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
            seconds, until = time.perf_counter() - began, time.time()
        if task.status is not ImportStatus.DONE or task.imported != task.total:
            raise RuntimeError(f"{path.name}: {task.status} {task.imported}/{task.total} {task.error}")
        return Measured(seconds, p99(waits(self._record, since, until)), memory.peak_mb)


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
    """Run a worker of all roles beside the block and stop it afterwards."""
    here = Path(__file__).parents[1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUNHONG_")},
        "PYTHONPATH": str(here),
        "JUNHONG_REDIS_URL": services.redis_url,
        "JUNHONG_POSTGRES_DSN": services.postgres_dsn,
        "JUNHONG_STORAGE_URL": (folder / "objects").as_uri(),
        "JUNHONG_LOG_LEVEL": "warning",
    }
    with (folder / "worker.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "import_bench.worker",
            str(folder / "probes"),
            "worker",
            env=environment,
            stdout=log,
            stderr=log,
        )
    pool = await open_pool(services.postgres_dsn, max_size=2)
    try:
        yield WorkerRun(services, pool, folder, process.pid)
    finally:
        await pool.close()
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
