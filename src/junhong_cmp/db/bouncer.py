"""Connections through a pooler that lends a server session for one transaction at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]
else:  # generic in its stubs only
    _Connection = asyncpg.Connection


class TransactionBoundConnection(_Connection):
    """A transaction-bound connection runs every statement with parameters inside a transaction.

    asyncpg sends such a statement in two steps. Between transactions PgBouncer may give each step to another
    server session, and the second then finds no statement, or somebody else's. Inside one it keeps the
    session; the price is two round trips for a statement that stands alone.
    """

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 - asyncpg's
        """Execute as asyncpg does; without parameters a query is one step already."""
        if not args:
            return await super().execute(query, timeout=timeout)
        async with self._bound():
            return await super().execute(query, *args, timeout=timeout)

    async def executemany(self, command: str, args: Any, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Execute for each of ``args``."""
        async with self._bound():
            await super().executemany(command, args, timeout=timeout)

    async def fetch(self, *args: Any, **options: Any) -> Any:
        """Return the rows of a query."""
        async with self._bound():
            return await super().fetch(*args, **options)

    async def fetchrow(self, *args: Any, **options: Any) -> Any:
        """Return the first row of a query, or None."""
        async with self._bound():
            return await super().fetchrow(*args, **options)

    async def fetchval(self, *args: Any, **options: Any) -> Any:
        """Return a value of the first row of a query, or None."""
        async with self._bound():
            return await super().fetchval(*args, **options)

    @asynccontextmanager
    async def _bound(self) -> AsyncIterator[None]:
        if self.is_in_transaction():
            yield
            return
        async with self.transaction():
            yield
