"""PgBouncer in transaction mode before the embedded PostgreSQL, for what must not lean on a session."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
from tests.redis_servers import free_ports
from tests.waiting import wait_until

from junhong_cmp.embedded.account import unprivileged_account
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
"""Where Debian puts it; None where it is not installed."""

_SESSIONS = 6
_CONFIG = """\
[databases]
{database} = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
server_round_robin = 1
"""


@asynccontextmanager
async def pgbouncer(dsn: str, folder: Path) -> AsyncIterator[str]:
    """Run a PgBouncer with few server sessions before ``dsn``; yield the URL through it.

    Sessions are handed out in turn, so that nothing finds its session of before by chance.
    """
    assert PROGRAM is not None
    target = urlsplit(dsn)
    place = parse_qs(target.query)
    database, (port,) = target.path.lstrip("/"), free_ports(1)
    config = folder / "pgbouncer.ini"
    config.write_text(
        _CONFIG.format(
            database=database,
            host=place["host"][0],
            port=place["port"][0],
            user=target.username,
            listen_port=port,
            sessions=_SESSIONS,
        ),
        encoding="utf-8",
    )
    url = f"postgresql://{target.username}@127.0.0.1:{port}/{database}?sslmode=disable"
    spec = ProcessSpec(
        name="pgbouncer",
        arguments=(PROGRAM, str(config)),
        log_path=folder / "pgbouncer.log",
        working_folder=folder,
        account=unprivileged_account(),
    )
    child = ChildProcess(spec)
    child.start()
    try:
        await wait_until(lambda: _answers(url), timeout=10, description="PgBouncer answers")
        yield url
    finally:
        await child.stop(timedelta(seconds=5))


async def _answers(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, statement_cache_size=0, timeout=2)
    except OSError:
        return False
    await connection.close()
    return True
