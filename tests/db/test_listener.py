from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.db.listener import NOTHING_KNOWN, Listener
from junhong_cmp.db.pool import Pool

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'junhong-listener'"


@pytest.fixture
def heard() -> list[tuple[str, str]]:
    return []


@pytest.fixture
async def listener(postgres_dsn: str, heard: list[tuple[str, str]]) -> AsyncIterator[Listener]:
    listener = Listener(postgres_dsn, ["one", "two"], lambda *message: heard.append(message))
    await listener.start()
    await wait_until(lambda: len(heard) == 2, description="the listener is connected")
    yield listener
    await listener.stop()


async def test_it_says_that_it_is_connected_and_then_what_it_hears(
    listener: Listener, heard: list[tuple[str, str]], pool: Pool
) -> None:
    assert heard == [("one", NOTHING_KNOWN), ("two", NOTHING_KNOWN)]
    await pool.execute("SELECT pg_notify('one', 'x'), pg_notify('other', 'z'), pg_notify('two', 'y')")
    await wait_until(lambda: len(heard) == 4, description="both notifications")
    assert heard[2:] == [("one", "x"), ("two", "y")]


async def test_it_reconnects_and_says_that_something_may_be_missing(
    listener: Listener, heard: list[tuple[str, str]], pool: Pool
) -> None:
    with capture_logs() as logs:
        heard.clear()
        await pool.execute(KILL)
        await wait_until(lambda: len(heard) == 2, description="connected again")
    assert heard == [("one", NOTHING_KNOWN), ("two", NOTHING_KNOWN)]
    assert [entry["event"] for entry in logs] == ["数据库通知连接中断，稍后重连", "数据库通知连接已恢复"]
    await pool.execute("SELECT pg_notify('two', 'still there')")
    await wait_until(lambda: ("two", "still there") in heard, description="a notification after it")


async def test_it_waits_for_a_database_that_is_not_there_yet(pool: Pool, postgres_dsn: str) -> None:
    heard: list[tuple[str, str]] = []
    with capture_logs() as logs:
        listener = Listener(
            postgres_dsn.replace("host=", "host=/nonexistent"),
            ["one"],
            lambda *message: heard.append(message),
        )
        await listener.start()
        await wait_until(lambda: logs, description="the failure is said")
        await listener.stop()
    assert [entry["event"] for entry in logs] == ["数据库通知连接失败，稍后重连"]
    assert heard == []


async def test_stopping_ends_its_session(postgres_dsn: str, pool: Pool) -> None:
    heard: list[tuple[str, str]] = []
    listener = Listener(postgres_dsn, ["one"], lambda *message: heard.append(message))
    await listener.stop()
    await listener.start()
    await wait_until(lambda: heard, description="connected")
    await listener.stop()
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'junhong-listener'"

    async def gone() -> bool:
        return bool(await pool.fetchval(count) == 0)

    await wait_until(gone, description="the session has ended")
