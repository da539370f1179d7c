"""Plans and pools removed from PostgreSQL, if no card would lose its limit by that."""

from typing import Final, NamedTuple

from junhong_cmp.db.pool import Conn

_LOCK_PLAN: Final = "SELECT id FROM data_plan WHERE account_id = $1 AND name = $2 FOR UPDATE"
_PLAN_CARDS: Final = """
    SELECT count(*) FROM iot_card WHERE account_id = $1 AND plan = $2 AND deleted_at IS NULL
"""
_REMOVE_PLAN: Final = "DELETE FROM data_plan WHERE id = $1"
# Whoever puts a card into the pool meanwhile waits for this lock, and finds the pool gone.
_LOCK_POOL: Final = "SELECT id FROM data_pool WHERE account_id = $1 AND name = $2 FOR UPDATE"
_POOL_CARDS: Final = "SELECT count(*) FROM iot_card WHERE pool_id = $1 AND deleted_at IS NULL"
_REMOVE_POOL: Final = "DELETE FROM data_pool WHERE id = $1"


class Removal(NamedTuple):
    """Whether the plan or pool was there, and how many cards kept it from being removed."""

    found: bool
    cards: int


async def remove_plan(conn: Conn, account_id: int, name: str) -> Removal:
    """Remove a plan no live card names; one that cards name stays."""
    async with conn.transaction():
        plan_id = await conn.fetchval(_LOCK_PLAN, account_id, name)
        if plan_id is None:
            return Removal(found=False, cards=0)
        cards = int(await conn.fetchval(_PLAN_CARDS, account_id, name))
        if not cards:
            await conn.execute(_REMOVE_PLAN, plan_id)
    return Removal(found=True, cards=cards)


async def remove_pool(conn: Conn, account_id: int, name: str) -> Removal:
    """Remove a pool no live card shares; one that cards share stays."""
    async with conn.transaction():
        pool_id = await conn.fetchval(_LOCK_POOL, account_id, name)
        if pool_id is None:
            return Removal(found=False, cards=0)
        cards = int(await conn.fetchval(_POOL_CARDS, pool_id))
        if not cards:
            await conn.execute(_REMOVE_POOL, pool_id)
    return Removal(found=True, cards=cards)
