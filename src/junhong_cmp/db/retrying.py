"""Which database errors pass by themselves, and transactions that outlive conflicts."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import asyncpg
import structlog

from junhong_cmp.db.pool import Conn, Pool

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")

MAX_ATTEMPTS: Final = 5

DATABASE_FAULTS: Final[tuple[type[Exception], ...]] = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a pooled connection whose server has just taken its leave
    OSError,
)
"""What asking PostgreSQL may raise for reasons outside this program."""
_FIRST_PAUSE_S: Final = 0.02

_CONFLICTS: Final = frozenset({"40001", "40P01"})
_OUTAGE_CLASSES: Final = frozenset({"08", "53", "57", "58"})
"""Connection lost · out of connections, memory or disk · shutting down, starting, cancelled · I/O."""
_OUTAGES: Final = frozenset({
    "25006",  # read-only: a standby, or a primary that was demoted
    "25P03",  # our session was idle in its transaction for too long: this process was frozen
    "25P04",
    "28000",  # credentials: they can be wrong for the while of a rotation
    "28P01",
    "3D000",  # the database is being restored
    "55P03",  # a lock was not to be had in time
})  # fmt: skip


def is_conflict(error: BaseException) -> bool:
    """Whether the transaction lost against another one and is worth running again at once."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _CONFLICTS


def is_outage(error: BaseException) -> bool:
    """Whether the database cannot serve anybody now; nothing is wrong with the request itself."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state in _OUTAGES or state[:2] in _OUTAGE_CLASSES
    if isinstance(error, asyncpg.InternalClientError):
        return True  # the connection is in no state to be used: it is dropped, the next one is sound
    if isinstance(error, asyncpg.InterfaceError):
        # A closed connection or pool; asyncpg's errors about bad arguments are ValueErrors too.
        return not isinstance(error, ValueError)
    return isinstance(error, OSError)  # refused, reset, no socket; TimeoutError is one as well


async def in_transaction(pool: Pool, work: Callable[[Conn], Awaitable[T]]) -> T:
    """Run ``work`` in a transaction of its own, anew when it loses a conflict (at most 5 times).

    ``work`` may therefore run more than once and must keep its effects in the database. An
    outage is raised at once; its commit may have happened, so ``work`` has to be idempotent.
    """

    async def transact(conn: Conn) -> T:
        async with conn.transaction():
            return await work(conn)

    return await retried(pool, transact)


async def retried(pool: Pool, transact: Callable[[Conn], Awaitable[T]]) -> T:
    """Run ``transact``, which makes one transaction itself, as :func:`in_transaction` runs its ``work``."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            async with pool.acquire() as conn:
                return await transact(conn)
        except asyncpg.PostgresError as error:
            if not is_conflict(error) or attempt == MAX_ATTEMPTS:
                raise
            log.info("数据库事务冲突，重试", attempt=attempt, sqlstate=error.sqlstate)
        await asyncio.sleep(_FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.5))
    raise AssertionError  # pragma: no cover - the last attempt returns or raises
