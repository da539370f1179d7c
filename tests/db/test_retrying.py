import asyncio
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from structlog.testing import capture_logs

from junhong_cmp.db.pool import Conn, Pool, open_pool
from junhong_cmp.db.retrying import DATABASE_FAULTS, MAX_ATTEMPTS, in_transaction, is_conflict, is_outage
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres


@pytest.fixture
async def two_rows(pool: Pool) -> Pool:
    await pool.execute(
        "INSERT INTO poll_error (task_type, account_id, code) VALUES ('t', 1, 'a'), ('t', 1, 'b')"
    )
    return pool


async def test_crossing_transactions_both_end_well(two_rows: Pool) -> None:
    barrier = asyncio.Barrier(2)
    runs: list[str] = []

    async def cross(first: str, second: str) -> None:
        async def work(conn: Conn) -> None:
            runs.append(first)
            await conn.execute("UPDATE poll_error SET count = count + 1 WHERE code = $1", first)
            if len(runs) <= barrier.parties:
                await barrier.wait()
            await conn.execute("UPDATE poll_error SET count = count + 1 WHERE code = $1", second)

        await in_transaction(two_rows, work)

    with capture_logs() as logs:
        await asyncio.gather(cross("a", "b"), cross("b", "a"))
    assert [row["count"] for row in await two_rows.fetch("SELECT count FROM poll_error")] == [3, 3]
    assert len(runs) == 3
    assert [(entry["event"], entry["sqlstate"]) for entry in logs] == [("数据库事务冲突，重试", "40P01")]


async def test_a_conflict_that_stays_is_raised_in_the_end(pool: Pool) -> None:
    attempts = 0

    async def work(conn: Conn) -> None:
        nonlocal attempts
        attempts += 1
        await conn.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")

    with pytest.raises(asyncpg.SerializationError):
        await in_transaction(pool, work)
    assert attempts == MAX_ATTEMPTS


async def test_other_errors_are_raised_at_once(pool: Pool) -> None:
    attempts = 0

    async def work(conn: Conn) -> None:
        nonlocal attempts
        attempts += 1
        await conn.execute("SELECT 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError) as caught:
        await in_transaction(pool, work)
    assert attempts == 1
    assert not is_outage(caught.value)
    assert not is_conflict(caught.value)


@pytest.mark.parametrize(
    "state", ["57P01", "57P02", "57P03", "57014", "53300", "53100", "08006", "25006", "55P03"]
)
async def test_outages_by_sqlstate(pool: Pool, state: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await pool.execute(f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$")
    assert is_outage(caught.value)


async def test_bad_arguments_are_no_outage(pool: Pool) -> None:
    with pytest.raises(asyncpg.DataError) as caught:
        await pool.fetchval("SELECT $1::bigint", 2**70)
    assert not is_outage(caught.value)


async def test_a_terminated_session_and_a_closed_pool_are_outages(postgres_dsn: str) -> None:
    pool = await open_pool(postgres_dsn)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)) as caught:
        await pool.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert is_outage(caught.value)
    assert await pool.fetchval("SELECT 1") == 1, "the pool replaces the session"
    await pool.close()
    with pytest.raises(asyncpg.InterfaceError) as closed:
        await pool.fetchval("SELECT 1")
    assert is_outage(closed.value)


@pytest.mark.chaos
async def test_a_restart_is_an_outage_that_passes(postgres_server: EmbeddedPostgres, pool: Pool) -> None:
    await postgres_server.kill()
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)) as caught:
        await pool.fetchval("SELECT 1")
    assert is_outage(caught.value)
    await postgres_server.start()
    assert await pool.fetchval("SELECT 1") == 1


async def test_a_connection_whose_server_has_just_taken_its_leave_is_an_outage(
    pool: Pool, postgres_server: EmbeddedPostgres, data_folder: Path
) -> None:
    """The farewell is there, the end of the connection not yet: asyncpg has an error of its own for it."""
    dsn = postgres_server.dsn(await pool.fetchval("SELECT current_database()"))
    (folder,) = parse_qs(urlsplit(dsn).query)["host"]
    farewell = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")

        async def ask() -> None:
            while data := await reader.read(65536):
                far_writer.write(data)

        async def answer() -> None:
            while data := await far_reader.read(65536):
                writer.write(data)
                if b"57P01" in data:
                    farewell.set()

        asking, answering = asyncio.create_task(ask()), asyncio.create_task(answer())
        await asyncio.wait({asking})  # the near end stays open when the far one is gone
        for side in (writer, far_writer):
            side.close()
        await answering

    async with await asyncio.start_unix_server(serve, data_folder / ".s.PGSQL.5432"):
        through = await open_pool(dsn.replace(folder, str(data_folder)), min_size=1, max_size=1)
        backend = await through.fetchval("SELECT pg_backend_pid()")
        await pool.execute("SELECT pg_terminate_backend($1)", backend)
        await asyncio.wait_for(farewell.wait(), 5)

        async def work(conn: Conn) -> None:
            await conn.execute("SELECT 1")

        with pytest.raises(DATABASE_FAULTS) as fault:
            await in_transaction(through, work)
        assert is_outage(fault.value)
        await in_transaction(through, work)
        through.terminate()  # a close would wait for the server to hang up
