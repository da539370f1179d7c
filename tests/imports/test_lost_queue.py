"""An import whose place in the queue was lost with Redis: the leader finds it."""

from pathlib import Path

import asyncpg
from redis.asyncio import Redis
from tests.imports.card_files import card_file
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

from junhong_cmp.asynq.client import Client
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.model import ImportStatus
from junhong_cmp.imports.store import find_import
from junhong_cmp.imports.submit import submit_import
from junhong_cmp.storage.store import open_storage


async def test_a_flushed_redis_delays_an_import_and_loses_none(
    pool: asyncpg.Pool,
    redis: Redis,
    postgres_dsn: str,
    redis_url: str,
    tmp_path: Path,
    account: CarrierAccount,
) -> None:
    path, storage = tmp_path / "cards.csv", open_storage(f"file://{tmp_path}/objects")
    path.write_bytes(card_file(range(50)))
    task = await submit_import(pool, storage, Client(redis), account_code=account.code, path=path)
    await redis.flushall()

    async def done() -> bool:
        current = await find_import(pool, task.id)
        return current is not None and current.status is ImportStatus.DONE

    env = {
        "JUNHONG_POSTGRES_DSN": postgres_dsn,
        "JUNHONG_REDIS_URL": redis_url,
        "JUNHONG_STORAGE_URL": f"file://{tmp_path}/objects",
        "JUNHONG_IMPORTS_REDRIVE_EVERY": "1s",
    }
    async with WorkerProcess(env, cwd=tmp_path) as worker:
        await wait_until(done, description="the import is found again and done", timeout=30)
        assert worker.find("导入任务不在队列中，已重新入队", import_ids=[task.id])
        assert await worker.stop() == 0
