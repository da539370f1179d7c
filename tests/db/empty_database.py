"""A database of its own, without our schema."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import asyncpg

_numbers = itertools.count(1)


@dataclass(frozen=True)
class EmptyDatabase:
    dsn: str
    name: str

    @classmethod
    @asynccontextmanager
    async def beside(cls, dsn: str) -> "AsyncIterator[EmptyDatabase]":
        """Create one on the server ``dsn`` names, and drop it afterwards."""
        name = f"empty_{next(_numbers)}"
        conn = await asyncpg.connect(dsn)
        try:
            await conn.execute(f"CREATE DATABASE {name} TEMPLATE template0")
            try:
                yield cls(urlunsplit(urlsplit(dsn)._replace(path=f"/{name}")), name)
            finally:
                await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
        finally:
            await conn.close()

    async def execute(self, statement: str) -> None:
        conn = await asyncpg.connect(self.dsn)
        try:
            await conn.execute(statement)
        finally:
            await conn.close()

    async def tables(self) -> set[str]:
        return await self._names("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")

    async def functions(self) -> set[str]:
        return await self._names("SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace")

    async def schema(self) -> set[str]:
        """Every column, constraint, index and trigger, as text."""
        return await self._names("""
            SELECT concat_ws(' ', table_name, column_name, data_type, column_default, is_nullable)
            FROM information_schema.columns WHERE table_schema = 'public'
            UNION SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
            FROM pg_constraint WHERE connamespace = 'public'::regnamespace
            UNION SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
            UNION SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
        """)

    async def user(self) -> str:
        (name,) = await self._names("SELECT current_user")
        return name

    async def socket_folder(self) -> str:
        (folders,) = await self._names("SHOW unix_socket_directories")
        return folders.split(",")[0].strip()

    async def _names(self, query: str) -> set[str]:
        conn = await asyncpg.connect(self.dsn)
        try:
            return {row[0] for row in await conn.fetch(query)}
        finally:
            await conn.close()
