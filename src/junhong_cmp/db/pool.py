"""The connection pool, with session limits that keep one bad query from stalling a process."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg
import orjson

if TYPE_CHECKING:
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
    Conn: TypeAlias = asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
else:  # asyncpg's classes are generic in its stubs only
    Pool = asyncpg.Pool
    Conn = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy

_CONNECT_TIMEOUT = timedelta(seconds=10)
_LOCK_TIMEOUT = timedelta(seconds=10)
# A frozen worker keeps the rows of its open transaction from everybody else for so long. Ours take
# milliseconds; a blocked event loop adds some seconds.
_IDLE_IN_TRANSACTION_TIMEOUT = timedelta(seconds=15)
_INACTIVE_CONNECTION_LIFETIME = timedelta(minutes=5)


async def open_pool(
    dsn: str,
    *,
    min_size: int = 1,
    max_size: int = 10,
    statement_timeout: timedelta = timedelta(seconds=30),
    application_name: str = "junhong",
    pgbouncer: bool = False,
) -> Pool:
    """Connect ``min_size`` sessions and return the pool; the caller closes it.

    ``jsonb`` values are Python values on both sides, instants are aware UTC.
    With ``pgbouncer`` nothing relies on a session: no cached statements, no start-up
    settings; the server-side limits then belong to the role (``ALTER ROLE … SET``).

    Raises:
        OSError, asyncpg.PostgresError, TimeoutError: when the first session cannot be opened.

    """
    settings = {"application_name": application_name}
    if not pgbouncer:
        settings |= session_settings(statement_timeout)
    return await asyncpg.create_pool(
        dsn,
        min_size=min_size,
        max_size=max_size,
        timeout=_CONNECT_TIMEOUT.total_seconds(),
        # The client gives up a little after the server would: a dead link still ends.
        command_timeout=statement_timeout.total_seconds() + 5,
        max_inactive_connection_lifetime=_INACTIVE_CONNECTION_LIFETIME.total_seconds(),
        statement_cache_size=0 if pgbouncer else 200,
        server_settings=settings,
        init=_use_json_values,
        reset=_keep_session,
    )


def session_settings(statement_timeout: timedelta) -> dict[str, str]:
    """Return the start-up parameters of a session; every wait in it has an end."""
    return {
        "search_path": "public",
        "timezone": "UTC",
        "statement_timeout": _milliseconds(statement_timeout),
        "lock_timeout": _milliseconds(min(_LOCK_TIMEOUT, statement_timeout)),
        "idle_in_transaction_session_timeout": _milliseconds(_IDLE_IN_TRANSACTION_TIMEOUT),
        # A plan kept from when a table was empty reads all of it for each row, for as long as the session
        # lives. Statements here work on whole batches: planning each anew is a small part of them.
        "plan_cache_mode": "force_custom_plan",
    }


def _milliseconds(duration: timedelta) -> str:
    return str(int(duration.total_seconds() * 1000))


async def _use_json_values(conn: "asyncpg.Connection[asyncpg.Record]") -> None:
    await conn.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encode_json, decoder=orjson.loads, format="text"
    )


async def _keep_session(_conn: object) -> None:
    """Skip asyncpg's ``RESET ALL`` round trip: stores change settings by ``SET LOCAL`` only.

    An open transaction is rolled back by asyncpg before this is called.
    """


def _encode_json(value: Any) -> str:
    return orjson.dumps(value).decode()
