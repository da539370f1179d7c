"""A real worker stopped in the middle of an import, and another that finishes it."""

from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.imports.card_files import card_file
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.importer import CHUNK_ROWS
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.storage.store import open_storage

ROWS = 30_000


@pytest.fixture
def env(postgres_dsn: str, redis_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_STORAGE_URL": f"file://{tmp_path}/objects",
        "JUNHONG_WORKER_ROLE": "consumer",
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cards.csv"
    path.write_bytes(card_file(range(ROWS)))
    return path


async def test_sigterm_stops_at_a_chunk_boundary_and_the_next_worker_goes_on(
    pool: asyncpg.Pool, redis: Redis, env: dict[str, str], path: Path, account: CarrierAccount
) -> None:
    storage = open_storage(env["JUNHONG_STORAGE_URL"])
    task = await submit_import(pool, storage, Client(redis), account_code=account.code, path=path)

    async def now() -> ImportTask:
        current = await find_import(pool, task.id)
        assert current is not None
        return current

    async def under_way() -> bool:
        return (await now()).total >= CHUNK_ROWS

    async def over() -> bool:
        return (await now()).status.is_final

    async with WorkerProcess(env, cwd=path.parent) as worker:
        await wait_until(under_way, description="the import is under way", timeout=30)
        assert await worker.stop() == 0
    stopped = await now()
    assert stopped.status is ImportStatus.RUNNING
    assert 0 < stopped.total < ROWS
    assert stopped.total % CHUNK_ROWS == 0
    async with WorkerProcess(env, cwd=path.parent) as worker:
        await wait_until(over, description="the next worker finishes the import", timeout=60)
        assert await worker.stop() == 0
    done = await now()
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, ROWS, ROWS)
