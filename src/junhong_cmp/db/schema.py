"""Which schema version this program needs, and whether a database has it."""

from typing import Final

from junhong_cmp.db.pool import Conn
from junhong_cmp.errors import SchemaOutdatedError

REQUIRED_VERSION: Final = "0013"
"""The newest revision in ``migrations/versions``; versions are four digits and sort as text."""


async def current_version(conn: Conn) -> str | None:
    """Return the database's schema version, or None for a database without our schema."""
    if await conn.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None  # asked first: a failing SELECT would end the caller's transaction
    version = await conn.fetchval("SELECT version_num FROM alembic_version")
    return None if version is None else str(version)


async def check_schema(conn: Conn) -> None:
    """Return when the schema is new enough; a newer one is accepted, for rolling upgrades.

    Raises:
        SchemaOutdatedError: naming the version found, the version needed and the remedy.

    """
    version = await current_version(conn)
    if version is None or version < REQUIRED_VERSION:
        raise SchemaOutdatedError(
            f"数据库结构版本过旧：当前为 {version or '空库'}，需要 {REQUIRED_VERSION}；请运行 junhong migrate"
        )
