import asyncpg
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.imports.card_files import Announcements, PutFile, card_file, delivery

from junhong_cmp.asynq.client import Client
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.redrive import ImportRedriveHandler
from junhong_cmp.imports.remarks import note_wait
from junhong_cmp.imports.store import find_import, start_import
from junhong_cmp.storage.store import Storage


async def test_imports_missing_from_the_queue_are_put_back_once(
    pool: asyncpg.Pool, redis: Redis, put_file: PutFile
) -> None:
    first, second = await put_file(card_file([1])), await put_file(card_file([2]))
    redrive = ImportRedriveHandler(pool, Client(redis))
    with capture_logs() as logs:
        assert await redrive.redrive() == [first.id, second.id]
        assert await redrive.redrive() == []
    assert [entry["event"] for entry in logs] == ["导入任务不在队列中，已重新入队"]
    assert await redis.llen("asynq:{import}:pending") == 2


async def test_a_flushed_redis_loses_no_import(pool: asyncpg.Pool, redis: Redis, put_file: PutFile) -> None:
    task = await put_file(card_file([1]))
    handler = ImportRedriveHandler(pool, Client(redis))
    await handler.process_task(delivery(task.id))
    await redis.flushall()
    await handler.process_task(delivery(task.id))
    assert await redis.llen("asynq:{import}:pending") == 1


async def test_finished_imports_stay_out_of_the_queue(
    pool: asyncpg.Pool, redis: Redis, put_file: PutFile, storage: Storage, announcements: Announcements
) -> None:
    task = await put_file(card_file([1]))
    await CardImportHandler(pool, storage, announcements).process_task(delivery(task.id))
    assert await ImportRedriveHandler(pool, Client(redis)).redrive() == []


async def test_an_import_that_stands_still_is_reported_once(
    pool: asyncpg.Pool, redis: Redis, put_file: PutFile
) -> None:
    task = await put_file(card_file([1]))
    redrive = ImportRedriveHandler(pool, Client(redis))
    await redrive.redrive()
    await pool.execute("UPDATE import_task SET updated_at = now() - interval '2 hours'")
    with capture_logs() as logs:
        await redrive.redrive()
        await redrive.redrive()
    assert [(entry["event"], entry["import_ids"]) for entry in logs] == [
        ("导入长时间没有进展，请检查导入队列与归档任务", [task.id])
    ]
    stalled = await find_import(pool, task.id)
    assert stalled is not None
    assert (stalled.waits_for or "").startswith("一小时没有进展：任务可能已归档")


async def test_beginning_over_and_over_is_no_progress(
    pool: asyncpg.Pool, redis: Redis, put_file: PutFile
) -> None:
    task = await put_file(card_file([1]))
    redrive = ImportRedriveHandler(pool, Client(redis))
    await redrive.redrive()
    async with pool.acquire() as conn:
        await start_import(conn, task.id)
        await conn.execute("UPDATE import_task SET updated_at = now() - interval '2 hours'")
        await start_import(conn, task.id)
    with capture_logs() as logs:
        await redrive.redrive()
    assert [entry["event"] for entry in logs] == ["导入长时间没有进展，请检查导入队列与归档任务"]


async def test_what_an_import_waits_for_is_told_rather_than_that_it_stands_still(
    pool: asyncpg.Pool, redis: Redis, put_file: PutFile
) -> None:
    task = await put_file(card_file([1]))
    redrive = ImportRedriveHandler(pool, Client(redis))
    await redrive.redrive()
    await note_wait(pool, task.id, "本机临时目录无法写入：磁盘已满")
    await pool.execute("UPDATE import_task SET updated_at = now() - interval '2 hours'")
    await redrive.redrive()
    waiting = await find_import(pool, task.id)
    assert waiting is not None
    assert waiting.waits_for == "本机临时目录无法写入：磁盘已满"


async def test_while_the_database_is_away_the_next_firing_has_to_do(
    pool: asyncpg.Pool, redis: Redis, put_file: PutFile, postgres_server: EmbeddedPostgres
) -> None:
    task = await put_file(card_file([1]))
    handler = ImportRedriveHandler(pool, Client(redis))
    await postgres_server.stop()
    with capture_logs() as logs:
        await handler.process_task(delivery(task.id))
    assert [entry["event"] for entry in logs] == ["数据库不可用，下次再检查未完成的导入"]
    await postgres_server.start()
    await handler.process_task(delivery(task.id))
    assert await redis.llen("asynq:{import}:pending") == 1
