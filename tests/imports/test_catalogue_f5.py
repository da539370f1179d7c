"""F5: kill -9 in the middle of an import: nothing twice, nothing lost, shards complete."""

import asyncio
import signal
import sys
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.imports.card_files import PutFile, card_file
from tests.waiting import wait_until
from tests.worker_process import ROOT, environment

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.imports.importer import CHUNK_ROWS
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import
from junhong_cmp.polling.keys import shard_due
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.storage.store import Storage, open_storage

ROWS = 3_200
RULE = """
    INSERT INTO polling_config (name, priority, intervals)
    VALUES ('每小时', 1, '{"carddata": {"interval_s": 3600}, "cardstatus": {"interval_s": 3600}}')
"""


@pytest.fixture
def storage_url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/objects"


@pytest.fixture
def storage(storage_url: str) -> Storage:
    return open_storage(storage_url)


async def run_import(*arguments: str) -> int:
    return await (await start_import_process(*arguments)).wait()


async def start_import_process(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.imports.crashing_import",
        *arguments,
        env=environment(PYTHONPATH=f"{ROOT / 'src'}:{ROOT}"),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
    )


@pytest.fixture
def places(postgres_dsn: str, redis_url: str, storage_url: str) -> tuple[str, str, str]:
    return postgres_dsn, redis_url, storage_url


@pytest.mark.parametrize(("call", "when"), [(1, "before"), (7, "before"), (4, "after")])
async def test_f5_a_killed_import_goes_on_where_it_died(
    pool: asyncpg.Pool, redis: Redis, places: tuple[str, str, str], put_file: PutFile, call: int, when: str
) -> None:
    await pool.execute(RULE)
    task = await put_file(card_file(range(ROWS)))
    assert await run_import(*places, str(task.id), str(call), when) == -signal.SIGKILL
    died = await find_import(pool, task.id)
    assert died is not None
    assert died.status is ImportStatus.RUNNING
    assert died.total in {call * CHUNK_ROWS, (call + 1) * CHUNK_ROWS, ROWS}  # the next chunk was under way
    await finishes_whole(pool, redis, places, task)


STALL = """
    CREATE TABLE stall (line_no int);
    CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM stall WHERE line_no = NEW.line_no) THEN PERFORM pg_sleep(600); END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER stall BEFORE INSERT ON import_row FOR EACH ROW EXECUTE FUNCTION stall();
"""
STALLED = """
    SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()
"""


async def test_f5_an_import_killed_at_row_after_row_ends_as_if_nothing_had_been(
    pool: asyncpg.Pool, redis: Redis, places: tuple[str, str, str], put_file: PutFile
) -> None:
    """A kill -9 in the middle of six of its transactions: at the first row, the last, and between."""
    await pool.execute(RULE)
    await pool.execute(STALL)
    task = await put_file(card_file(range(ROWS)))
    totals = []
    for line in (2, 499, 502, 1_777, 2_600, ROWS + 1):
        await pool.execute("DELETE FROM stall")
        await pool.execute("INSERT INTO stall VALUES ($1)", line)
        process = await start_import_process(*places, str(task.id), "0", "never")
        await wait_until(lambda: pool.fetchval(STALLED), description=f"it writes line {line}", timeout=30)
        backend = await pool.fetchval(STALLED)
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        await pool.execute("SELECT pg_terminate_backend($1, 5000)", backend)
        died = await find_import(pool, task.id)
        assert died is not None
        totals.append(died.total)
        assert died.imported == await pool.fetchval("SELECT count(*) FROM iot_card") == died.total
    assert totals == [(line - 2) // CHUNK_ROWS * CHUNK_ROWS for line in (2, 499, 502, 1_777, 2_600, ROWS + 1)]
    await pool.execute("DELETE FROM stall")
    await finishes_whole(pool, redis, places, task)


async def finishes_whole(
    pool: asyncpg.Pool, redis: RedisClient, places: tuple[str, str, str], task: ImportTask
) -> None:
    """Run the import to its end: no card twice, none missing, each waiting in the shards of its polls."""
    assert await run_import(*places, str(task.id), "0", "never") == 0
    done = await find_import(pool, task.id)
    assert done is not None
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, ROWS, ROWS)
    ids = {row["id"] for row in await pool.fetch("SELECT id FROM iot_card WHERE deleted_at IS NULL")}
    assert len(ids) == ROWS
    for task_type in (TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS):
        assert sorted(await waiting_cards(redis, task_type, task.account_id)) == sorted(ids)


async def waiting_cards(redis: RedisClient, task_type: TaskType, account_id: int) -> list[int]:
    shards = PollingQueueManager(redis).shards([account_id], [task_type])
    members = [
        member
        for shard in shards
        for member in await redis.execute_command("ZRANGE", shard_due(shard), 0, -1)
    ]
    return [int(member) for member in members]
