"""Fixtures for everybody: one real Redis and one real PostgreSQL per test session.

``redis_url`` / ``redis``         a flushed database and a client for it
``postgres_dsn`` / ``pool``       a fresh, migrated database and a pool on it
``redis_server`` / ``postgres_server``  the servers themselves, for tests that kill, freeze or restart them;
                                  whatever state a test leaves them in, the next one finds them running
``data_folder``                   an empty folder with a short path every account can reach
``clock``                         a clock that only the test moves

Which Redis it is, is told by the environment: see ``tests/redis_servers.py``. Tests marked ``single_node``
are left out on a cluster.
"""

import asyncio
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog
from redis.asyncio import Redis
from tests.redis_servers import RedisFixture, clustered, open_test_redis
from tests.waiting import FakeClock

from junhong_cmp.db.migrate import migrate
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.embedded.account import unprivileged_account
from junhong_cmp.embedded.binaries import find_postgres_programs
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres, PostgresPlace
from junhong_cmp.embedded.process import ChildProcess

_TEMPLATE = "junhong_template"
_LEFTOVER_GRACE_S = 2.0


def _make_reachable_folder(prefix: str) -> Path:
    """pytest's own temporary folders are long and closed to other accounts; server sockets need neither."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp")).resolve()
    folder.chmod(0o755)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if clustered else ():
        mark = item.get_closest_marker("single_node")
        if mark is not None:
            item.add_marker(pytest.mark.skip(reason=f"one server only: {mark.args[0]}"))


@pytest.fixture(scope="session")
def _server_folder() -> Iterator[Path]:
    folder = _make_reachable_folder("jh-s-")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def _server_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop for session fixtures; servers are bound to no loop, so tests may restart them from their own."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def _session_servers() -> list[RedisFixture | EmbeddedPostgres]:
    """Servers that outlive a test on purpose; the leftover check passes over them."""
    return []


@pytest.fixture(scope="session")
def _redis_session(
    _server_folder: Path,
    _server_loop: asyncio.AbstractEventLoop,
    _session_servers: list[RedisFixture | EmbeddedPostgres],
) -> Iterator[RedisFixture]:
    server = open_test_redis(_server_folder)
    _session_servers.append(server)
    _server_loop.run_until_complete(server.start())
    yield server
    _server_loop.run_until_complete(server.stop())


@pytest.fixture
def redis_server(
    _redis_session: RedisFixture, _server_loop: asyncio.AbstractEventLoop
) -> Iterator[RedisFixture]:
    yield _redis_session
    if not _redis_session.running:
        _server_loop.run_until_complete(_redis_session.start())


@pytest.fixture
def redis_url(redis_server: RedisFixture) -> str:
    redis_server.empty()
    return redis_server.url


@pytest.fixture
async def redis(redis_url: str, redis_server: RedisFixture) -> AsyncIterator[Redis]:
    client = redis_server.open()
    yield client
    await client.aclose()


@pytest.fixture(scope="session")
def _postgres_session(
    _server_folder: Path,
    _server_loop: asyncio.AbstractEventLoop,
    _session_servers: list[RedisFixture | EmbeddedPostgres],
) -> Iterator[EmbeddedPostgres]:
    account = unprivileged_account()
    server = EmbeddedPostgres(
        PostgresPlace(
            programs=find_postgres_programs(account, lambda: _server_folder / "programs"),
            data_folder=_server_folder / "pg",
            socket_folder=_server_folder / "pgs",
            log_path=_server_folder / "postgres.log",
            account=account,
            durable=False,
        )
    )
    _session_servers.append(server)
    _server_loop.run_until_complete(server.start())
    yield server
    _server_loop.run_until_complete(server.stop())


@pytest.fixture(scope="session")
def _template_database(_postgres_session: EmbeddedPostgres, _server_loop: asyncio.AbstractEventLoop) -> str:
    _server_loop.run_until_complete(_postgres_session.create_database(_TEMPLATE))
    _server_loop.run_until_complete(migrate(_postgres_session.dsn(_TEMPLATE)))
    return _TEMPLATE


@pytest.fixture
def postgres_server(
    _postgres_session: EmbeddedPostgres, _server_loop: asyncio.AbstractEventLoop
) -> Iterator[EmbeddedPostgres]:
    yield _postgres_session
    if _postgres_session.process is None or not _postgres_session.process.running:
        _server_loop.run_until_complete(_postgres_session.start())


_database_numbers = itertools.count(1)


@pytest.fixture
def postgres_dsn(
    postgres_server: EmbeddedPostgres, _template_database: str, _server_loop: asyncio.AbstractEventLoop
) -> Iterator[str]:
    name = f"test_{next(_database_numbers)}"
    _server_loop.run_until_complete(postgres_server.create_database(name, template=_template_database))
    yield postgres_server.dsn(name)
    if postgres_server.process is not None and postgres_server.process.running:
        _server_loop.run_until_complete(postgres_server.drop_database(name))


@pytest.fixture
async def pool(postgres_dsn: str) -> AsyncIterator[Pool]:
    pool = await open_pool(postgres_dsn)
    yield pool
    await pool.close()


@pytest.fixture
def data_folder() -> Iterator[Path]:
    folder = _make_reachable_folder("jh-d-")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(autouse=True)
def _logs_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a test, or a command it ran in this process, did to the log.

    A logger that is first used under a caching configuration keeps it for ever, and no later test could
    capture what it says: nothing is cached here.
    """
    root, configure = logging.getLogger(), structlog.configure
    handlers, level = root.handlers[:], root.level

    def configure_without_cache(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", configure_without_cache)
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


@pytest.fixture(autouse=True)
def _no_child_left_behind(_session_servers: list[RedisFixture | EmbeddedPostgres]) -> Iterator[None]:
    """Fail a test that leaves processes of its own, and end them so that only this test suffers."""
    before = set(_own_children(_session_servers))
    yield
    left = [child for child in _own_children(_session_servers) if child not in before]
    _, alive = psutil.wait_procs(left, timeout=_LEFTOVER_GRACE_S)
    if alive:
        names = [_describe(child) for child in alive]
        for child in alive:
            child.kill()
        pytest.fail(f"the test left processes running: {names}")


def _own_children(servers: list[RedisFixture | EmbeddedPostgres]) -> list[psutil.Process]:
    own = {process.pid for server in servers for process in _processes(server)}
    children = [child for child in psutil.Process(os.getpid()).children() if child.pid not in own]
    found: list[psutil.Process] = []
    for child in children:
        try:
            if not _is_resource_tracker(child):
                found += [child, *child.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    return found


def _processes(server: RedisFixture | EmbeddedPostgres) -> Sequence[ChildProcess]:
    if isinstance(server, EmbeddedPostgres):
        return [server.process] if server.process is not None else []
    return server.processes


def _is_resource_tracker(process: psutil.Process) -> bool:
    """multiprocessing starts it once per interpreter and ends it with the interpreter."""
    return "multiprocessing.resource_tracker" in " ".join(process.cmdline())


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline()) or process.name()}"
    except psutil.NoSuchProcess:
        return str(process.pid)
