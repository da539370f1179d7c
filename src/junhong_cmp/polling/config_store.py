"""The polling configuration in PostgreSQL, read as one consistent whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.pause_store import list_type_pauses
from junhong_cmp.polling.tasks import TaskType

_VERSION = "SELECT coalesce(max(version), 0) FROM polling_config_version"
_RULES = """
SELECT id, name, priority, account_id, category, card_status, real_name_status,
       intervals::text AS intervals, enabled
FROM polling_config ORDER BY priority, id
"""


@dataclass(frozen=True, slots=True)
class StoredConfig:
    """Configuration rows, accounts and pauses of their task types as of one version; not validated."""

    version: int
    rows: Sequence[Mapping[str, Any]]
    accounts: Sequence[CarrierAccount]
    type_pauses: Mapping[tuple[int, TaskType], datetime] = field(default_factory=dict)


async def find_version(conn: Conn) -> int:
    """Return the version of the configuration now stored."""
    return int(await conn.fetchval(_VERSION))


async def load_config(conn: Conn) -> StoredConfig:
    """Read version, rules, accounts and pauses in one snapshot of the database."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        return await read_config(conn)


async def read_config(conn: Conn) -> StoredConfig:
    """Read the same inside the caller's transaction, with what that has changed already."""
    version = await find_version(conn)
    rows = [{**row, "intervals": _read_json(row["intervals"])} for row in await conn.fetch(_RULES)]
    return StoredConfig(version, rows, await list_accounts(conn), await list_type_pauses(conn))


def _read_json(text: str) -> Any:
    """Read a value of ``jsonb``; one whose numbers or nesting exceed what Python reads stays its text.

    PostgreSQL stores numbers of any length and nesting of any depth. The validation refuses the text.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
