"""Data pools in PostgreSQL: what they contain, and which cards share them."""

from collections.abc import Collection
from datetime import timedelta
from typing import NamedTuple

from junhong_cmp.cards.limit_store import count_pools
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.pool import Conn, Pool

_POOL_USE = """
    SELECT d.id, a.code AS account, d.name, d.capacity_kb, d.threshold_kb, d.cycle, d.used_kb,
        (SELECT count(*) FROM iot_card AS c WHERE c.pool_id = d.id AND c.deleted_at IS NULL) AS cards
    FROM data_pool AS d JOIN carrier_account AS a ON a.id = d.account_id
    WHERE ($1::bigint IS NULL OR d.account_id = $1) AND ($2::text IS NULL OR d.name = $2)
    ORDER BY a.code, d.name
"""
# updated_at says when the total was last counted: another line does not change that.
_RECORD = """
    INSERT INTO data_pool (account_id, name, capacity_kb, threshold_kb) VALUES ($1, $2, $3, $4)
    ON CONFLICT (account_id, name)
        DO UPDATE SET capacity_kb = excluded.capacity_kb, threshold_kb = excluded.threshold_kb
"""
# Locked in the order of their ids, as polls lock them.
_PUT = """
    WITH locked AS (
        SELECT id, pool_id FROM iot_card
        WHERE id = ANY ($1::bigint[]) AND account_id = $2 AND deleted_at IS NULL
            AND pool_id IS DISTINCT FROM $3
        ORDER BY id FOR NO KEY UPDATE)
    UPDATE iot_card AS c SET pool_id = $3, version = c.version + 1, updated_at = now()
    FROM locked WHERE c.id = locked.id
    RETURNING locked.pool_id AS old_pool_id
"""
_TAKE = """
    WITH locked AS (
        SELECT id FROM iot_card WHERE id = ANY ($1::bigint[]) AND pool_id = $2 AND deleted_at IS NULL
        ORDER BY id FOR NO KEY UPDATE)
    UPDATE iot_card AS c SET pool_id = NULL, version = c.version + 1, updated_at = now()
    FROM locked WHERE c.id = locked.id
    RETURNING c.id
"""
_EXISTS = "SELECT true FROM data_pool WHERE id = $1 AND account_id = $2 FOR KEY SHARE"
_MEMBERS = "SELECT id FROM iot_card WHERE pool_id = $1 AND deleted_at IS NULL ORDER BY id"


class PoolUse(NamedTuple):
    """A data pool, what its cards have used of it together in ``cycle``, and how many cards share it."""

    id: int
    account: str
    name: str
    capacity_kb: int
    threshold_kb: int | None
    cycle: CycleId | None
    used_kb: int
    cards: int


async def list_pool_use(
    conn: Conn | Pool, account_id: int | None = None, name: str | None = None
) -> list[PoolUse]:
    """Return the pools of one account, or of all, by account and name; or the one of this name."""
    return [PoolUse(**row) for row in await conn.fetch(_POOL_USE, account_id, name)]


async def record_pool(
    conn: Conn | Pool, account_id: int, name: str, capacity_kb: int, threshold_kb: int | None
) -> None:
    """Insert a pool, or change what it contains and at which total its cards are to be stopped."""
    await conn.execute(_RECORD, account_id, name, capacity_kb, threshold_kb)


async def put_cards(
    conn: Conn, account_id: int, pool_id: int, card_ids: Collection[int]
) -> list[int | None] | None:
    """Put the account's live cards among ``card_ids`` into its pool.

    Return in which pool each was before that was not in this one already; None if the pool is gone.
    """
    async with conn.transaction():
        if await conn.fetchval(_EXISTS, pool_id, account_id) is None:
            return None
        rows = await conn.fetch(_PUT, list(card_ids), account_id, pool_id)
    return [row["old_pool_id"] for row in rows]


async def take_cards(conn: Conn, pool_id: int, card_ids: Collection[int]) -> int:
    """Take the cards among ``card_ids`` that are in the pool out of it; return how many were."""
    return len(await conn.fetch(_TAKE, list(card_ids), pool_id))


async def list_members(conn: Conn | Pool, pool_id: int) -> list[int]:
    """Return the live cards in the pool: all at once, for each page would gather and sort them all."""
    return [row["id"] for row in await conn.fetch(_MEMBERS, pool_id)]


async def recount_pools(conn: Conn, pool_ids: Collection[int], cycle: CycleId) -> None:
    """Add up at once what the pools' cards have used in the cycle: their cards have just changed."""
    async with conn.transaction():
        await count_pools(conn, sorted(pool_ids), cycle, timedelta(0))
