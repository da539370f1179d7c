"""Many files handed in at once: a few are imported at a time, each whole, and polls keep their slots."""

from pathlib import Path

import asyncpg
from redis.asyncio import Redis
from tests.imports.card_files import card_file
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import count_cards
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.storage.store import open_storage
from junhong_cmp.worker.modules import IMPORTS_AT_ONCE

FILES = 30
ROWS = 40
NEW = 30


async def test_a_few_imports_run_at_a_time_and_all_to_their_end(
    pool: asyncpg.Pool,
    redis: Redis,
    postgres_dsn: str,
    redis_url: str,
    tmp_path: Path,
    account: CarrierAccount,
) -> None:
    env = {
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_STORAGE_URL": f"file://{tmp_path}/objects",
        "JUNHONG_WORKER_ROLE": "consumer",
    }
    storage, client = open_storage(env["JUNHONG_STORAGE_URL"]), Client(redis)
    for number in range(FILES):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(card_file(range(number * NEW, number * NEW + ROWS)))
        await submit_import(pool, storage, client, account_code=account.code, path=path)
    most = 0

    async def all_over() -> bool:
        nonlocal most
        most = max(most, await redis.llen("asynq:{import}:active"))
        return bool(await pool.fetchval("SELECT count(*) = $1 FROM import_task WHERE status = 'done'", FILES))

    async with WorkerProcess(env, cwd=tmp_path) as worker:
        await wait_until(all_over, description="all are imported", timeout=60)
        assert await worker.stop() == 0
    assert 1 <= most <= IMPORTS_AT_ONCE
    assert await count_cards(pool) == (FILES - 1) * NEW + ROWS
    sums = await pool.fetchrow("SELECT sum(imported) AS imported, sum(skipped) AS skipped FROM import_task")
    assert dict(sums or {}) == {"imported": (FILES - 1) * NEW + ROWS, "skipped": (FILES - 1) * (ROWS - NEW)}
