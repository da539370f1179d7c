"""All there is about one card, read in one snapshot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import asyncpg

from junhong_cmp.cards.card_rows import card_from_row
from junhong_cmp.cards.iccid import IccidError, is_same_card, normalise
from junhong_cmp.cards.model import Card
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.exports.errors import NothingFoundError

_CARDS: Final = """
    SELECT c.*, a.code AS account_code, a.name AS account_name, a.carrier, a.tz, d.name AS pool_name
    FROM iot_card AS c JOIN carrier_account AS a ON a.id = c.account_id
        LEFT JOIN data_pool AS d ON d.id = c.pool_id
    WHERE c.iccid19 = $1
    ORDER BY c.deleted_at DESC NULLS FIRST, c.id
"""
_LISTS: Final[Mapping[str, str]] = {
    "days": "SELECT day, used_kb FROM card_usage_daily WHERE card_id = $1 ORDER BY day DESC LIMIT $2",
    "cycles": """
        SELECT cycle, used_kb, closed FROM card_usage_cycle
        WHERE card_id = $1 ORDER BY cycle DESC LIMIT $2""",
    "operations": """
        SELECT id, kind, reason, status, requested_by, attempts, error, requested_at, sent_at, verified_at
        FROM card_operation WHERE card_id = $1 ORDER BY requested_at DESC, id DESC LIMIT $2""",
    "history": """
        SELECT old_status, new_status, old_raw, new_raw, observed_at
        FROM card_status_history WHERE card_id = $1 ORDER BY observed_at DESC, id DESC LIMIT $2""",
    "anomalies": """
        SELECT kind, reading_at, cycle, expected_kb, reading_kb
        FROM usage_anomaly WHERE card_id = $1 ORDER BY reading_at DESC LIMIT $2""",
}
_SHORT: Final = 19

Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """A card, the account it belongs to, and what was recorded of it, the latest first."""

    card: Card
    account_code: str
    account_name: str
    carrier: str
    tz: str
    pool_name: str | None
    created_at: datetime
    days: Entries
    cycles: Entries
    operations: Entries
    history: Entries
    anomalies: Entries


async def load_dossier(pool: Pool, number: str, *, limit: int) -> Dossier:
    """Return what is known of the live card with this number, in its form of 19 or of 20 characters.

    ``limit`` is how many entries of each kind are wanted.

    Raises:
        NothingFoundError: no number, no such card, a deleted one, or one of several cards.

    """
    try:
        iccid = normalise(number)
    except IccidError as error:
        raise NothingFoundError(f"不是有效的 ICCID：{error}") from error
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        row = _choose(iccid.value, await conn.fetch(_CARDS, iccid.iccid19))
        entries = await _entries(conn, row["id"], limit)
    return Dossier(
        card=card_from_row(row),
        account_code=row["account_code"],
        account_name=row["account_name"],
        carrier=row["carrier"],
        tz=row["tz"],
        pool_name=row["pool_name"],
        created_at=row["created_at"],
        **entries,
    )


def _choose(value: str, rows: Sequence[asyncpg.Record]) -> asyncpg.Record:
    same = [row for row in rows if is_same_card(row["iccid"], value)]
    live = [row for row in same if row["deleted_at"] is None]
    if len(live) > 1 and len(value) == _SHORT and all(row["iccid"] != value for row in live):
        raise NothingFoundError(f"{value} 对应 {len(live)} 张卡，请给出 20 位 ICCID")
    if live:
        return next((row for row in live if row["iccid"] == value), live[0])
    if same:
        raise NothingFoundError(f"卡 {value} 已于 {same[0]['deleted_at'].astimezone():%Y-%m-%d %H:%M} 删除")
    raise NothingFoundError(f"没有 ICCID 为 {value} 的卡")


async def _entries(conn: Conn, card_id: int, limit: int) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [dict(row) for row in await conn.fetch(statement, card_id, limit)]
        for name, statement in _LISTS.items()
    }
