"""Plans and pools of cards in PostgreSQL."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import asyncpg

from junhong_cmp.cards.limits import CardLimits, PoolState
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.pool import Conn, Pool

POOL_COUNT_AGE: Final = timedelta(minutes=1)
"""A pool's total is added up again at most this often, however many of its cards are read."""

_LIMITS = """
    SELECT c.id AS card_id, p.quota_kb, d.id AS pool_id, d.name, d.capacity_kb, d.threshold_kb, d.cycle,
        d.used_kb
    FROM iot_card AS c
        LEFT JOIN data_plan AS p ON p.account_id = c.account_id AND p.name = c.plan
        LEFT JOIN data_pool AS d ON d.id = c.pool_id
    WHERE c.id = ANY ($1::bigint[]) AND c.deleted_at IS NULL
"""
_PLANS = "SELECT account_id, name, quota_kb FROM data_plan"
# Cards may name a plan nobody has described yet: it limits nothing, and an operator has to see that.
_PLAN_USE = """
    SELECT a.code, coalesce(p.name, c.plan) AS name, p.quota_kb, coalesce(c.cards, 0) AS cards
    FROM data_plan AS p
        FULL JOIN (
            SELECT account_id, plan, count(*) AS cards FROM iot_card
            WHERE ($1::bigint IS NULL OR account_id = $1) AND plan <> '' AND deleted_at IS NULL
            GROUP BY 1, 2) AS c ON c.account_id = p.account_id AND c.plan = p.name
        JOIN carrier_account AS a ON a.id = coalesce(p.account_id, c.account_id)
    WHERE $1::bigint IS NULL OR a.id = $1
    ORDER BY 1, 2
"""
_RECORD_PLAN = """
    INSERT INTO data_plan (account_id, name, quota_kb) VALUES ($1, $2, $3)
    ON CONFLICT (account_id, name) DO UPDATE SET quota_kb = excluded.quota_kb, updated_at = now()
"""
# Whoever comes first locks the row: the others find a fresh total and add nothing up.
_STALE_POOLS = """
    SELECT id FROM data_pool
    WHERE id = ANY ($1::bigint[]) AND (cycle IS DISTINCT FROM $2 OR updated_at < now() - $3::interval)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
_COUNT_POOLS = """
    UPDATE data_pool AS p SET cycle = $2, updated_at = now(), used_kb = (
        SELECT coalesce(sum(c.cycle_used_kb), 0) FROM iot_card AS c
        WHERE c.pool_id = p.id AND c.cycle = $2 AND c.deleted_at IS NULL)
    WHERE p.id = ANY ($1::bigint[])
"""


class PlanUse(NamedTuple):
    """A plan, what it contains (None: cards name it, nobody has described it), and how many cards have it."""

    account: str
    name: str
    quota_kb: int | None
    cards: int


async def load_limits(conn: Conn | Pool, card_ids: Collection[int]) -> dict[int, CardLimits]:
    """Return the limits of the live cards among ``card_ids``."""
    return {row["card_id"]: _limits(row) for row in await conn.fetch(_LIMITS, list(card_ids))}


async def load_plan_quotas(pool: Pool) -> dict[tuple[int, str], int]:
    """Return what every plan contains, by account and name."""
    return {(row["account_id"], row["name"]): row["quota_kb"] for row in await pool.fetch(_PLANS)}


async def list_plan_use(conn: Conn | Pool, account_id: int | None = None) -> list[PlanUse]:
    """Return the plans of one account, or of all, and those only cards name, by account and name."""
    rows = await conn.fetch(_PLAN_USE, account_id)
    return [PlanUse(row["code"], row["name"], row["quota_kb"], row["cards"]) for row in rows]


async def record_plan(conn: Conn | Pool, account_id: int, name: str, quota_kb: int) -> None:
    """Insert a plan, or change what it contains."""
    await conn.execute(_RECORD_PLAN, account_id, name, quota_kb)


async def count_pools(
    conn: Conn, pool_ids: Sequence[int], cycle: CycleId, age: timedelta = POOL_COUNT_AGE
) -> None:
    """Add up what the pools' cards have used in the cycle, unless done within ``age``; in a transaction."""
    stale = [row["id"] for row in await conn.fetch(_STALE_POOLS, list(pool_ids), cycle, age)]
    if stale:
        await conn.execute(_COUNT_POOLS, stale, cycle)


def _limits(row: asyncpg.Record) -> CardLimits:
    if row["pool_id"] is None:
        return CardLimits(row["quota_kb"])
    pool = PoolState(
        id=row["pool_id"],
        name=row["name"],
        capacity_kb=row["capacity_kb"],
        threshold_kb=row["threshold_kb"],
        cycle=row["cycle"],
        used_kb=row["used_kb"],
    )
    return CardLimits(row["quota_kb"], pool)
