"""Bring a database to the schema this program needs, or step it back.

Alembic keeps the order of revisions and renders their SQL; asyncpg runs that SQL. So
every DSN the pool takes works here too, and no second PostgreSQL driver is needed.
"""

import io
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import asyncpg
import structlog
from alembic import command
from alembic.config import Config

from junhong_cmp.db.pool import session_settings
from junhong_cmp.db.schema import REQUIRED_VERSION, check_schema, current_version

__all__ = [
    "REQUIRED_VERSION",
    "MigrationReport",
    "check_schema",
    "current_version",
    "migrate",
    "migrate_down",
]

log = structlog.stdlib.get_logger(__name__)

MIGRATION_LOCK_KEY: Final = 0x6A68_6D67  # "jhmg"
_STATEMENT_TIMEOUT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Schema version before and after; None stands for a database without our schema."""

    from_version: str | None
    to_version: str | None

    @property
    def changed(self) -> bool:
        """Whether anything was applied."""
        return self.from_version != self.to_version


async def migrate(dsn: str) -> MigrationReport:
    """Apply every missing revision in one transaction; any number of processes may call it at once.

    A database newer than this program is left alone: an older program has nothing to add.
    """
    return await _move(dsn, target=REQUIRED_VERSION)


async def migrate_down(dsn: str, target: str | None) -> MigrationReport:
    """Step back to revision ``target``, or with None remove our schema and all its data."""
    return await _move(dsn, target=target, down=True)


async def _move(dsn: str, *, target: str | None, down: bool = False) -> MigrationReport:
    conn = await asyncpg.connect(dsn, server_settings=session_settings(_STATEMENT_TIMEOUT))
    try:
        async with conn.transaction():
            # Held to the end of the transaction: a second process waits, then finds nothing to do.
            await conn.execute("SET LOCAL lock_timeout = 0")
            await conn.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK_KEY)
            before = await current_version(conn)
            report = MigrationReport(before, target)
            if not report.changed or ((before or "") > (target or "") and not down):
                return MigrationReport(before, before)
            await conn.execute(_render(before, target, down=down))
            if target is None:
                await conn.execute("DROP TABLE alembic_version")  # Alembic leaves it, empty
    finally:
        await conn.close()
    log.info("数据库结构已更新", from_version=report.from_version, to_version=report.to_version)
    return report


def _render(before: str | None, target: str | None, *, down: bool) -> str:
    sql = io.StringIO()
    config = Config(output_buffer=sql)
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    step = command.downgrade if down else command.upgrade
    step(config, f"{before or 'base'}:{target or 'base'}", sql=True)
    return sql.getvalue()
