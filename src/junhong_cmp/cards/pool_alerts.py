"""Alerts about data pools, raised once a pool, rule, cycle and level, whichever of its cards is read."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from junhong_cmp.cards.alerts import AlertRule, pool_alert_text
from junhong_cmp.cards.limits import PoolState
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.pool import Conn, Pool

# The heaviest user stands for its pool; one that has stood for another pool already, and moved, cannot again.
# A pool whose cards have all left has nobody to tell about. OFFSET 0 has alerts looked up card by card from
# the heaviest on: joined, all of them are read for each pool.
_CANDIDATES = """
    SELECT d.id, d.name, d.capacity_kb, d.threshold_kb, d.cycle, d.used_kb, heaviest.id AS card_id
    FROM data_pool AS d
        CROSS JOIN LATERAL (
            SELECT c.id FROM (
                SELECT c.id, c.cycle_used_kb FROM iot_card AS c
                WHERE c.pool_id = d.id AND c.deleted_at IS NULL AND c.cycle = $2
                    AND ($3::text IS NULL OR c.category = $3)
                ORDER BY c.cycle_used_kb DESC, c.id OFFSET 0) AS c
            WHERE NOT EXISTS (
                SELECT FROM alert_event AS e
                WHERE e.card_id = c.id AND e.rule_id = $5 AND e.cycle = $2 AND e.level = $6
                OFFSET 0)
            ORDER BY c.cycle_used_kb DESC, c.id LIMIT 1) AS heaviest
    WHERE d.account_id = $1 AND d.cycle = $2 AND d.capacity_kb > 0 AND d.used_kb >= d.capacity_kb * $4::float8
        AND NOT EXISTS (
            SELECT FROM alert_event AS e
            WHERE e.pool_id = d.id AND e.rule_id = $5 AND e.cycle = $2 AND e.level = $6
            OFFSET 0)
    ORDER BY d.id
"""
_RAISE = """
    INSERT INTO alert_event (rule_id, card_id, pool_id, cycle, level, message, raised_at)
    SELECT $1, n.card_id, n.pool_id, $2, $3, n.message, $7
    FROM unnest($4::bigint[], $5::bigint[], $6::text[]) AS n (card_id, pool_id, message)
    ON CONFLICT DO NOTHING
    RETURNING pool_id
"""
_POOLS = "SELECT id FROM data_pool WHERE account_id = $1 ORDER BY id"


async def list_pool_ids(pool: Pool, account_id: int) -> list[int]:
    """Return the account's pools."""
    return [row["id"] for row in await pool.fetch(_POOLS, account_id)]


async def raise_pool_alerts(
    conn: Conn, rule: AlertRule, account_id: int, cycle: CycleId, now: datetime
) -> int:
    """Raise what the rule says about the account's pools and has not said yet; return how many."""
    rows = await conn.fetch(
        _CANDIDATES, account_id, cycle, rule.category, rule.threshold, rule.id, rule.level
    )
    told = _told(rows, rule, cycle)
    if not told:
        return 0
    columns = [list(column) for column in zip(*told, strict=True)]
    return len(await conn.fetch(_RAISE, rule.id, cycle, rule.level, *columns, now))


def _told(rows: Sequence[asyncpg.Record], rule: AlertRule, cycle: CycleId) -> list[tuple[int, int, str]]:
    """Return the card, the pool and the text of each alert to be raised."""
    told: list[tuple[int, int, str]] = []
    for row in rows:
        pool = PoolState(**{name: value for name, value in row.items() if name != "card_id"})
        text = pool_alert_text(rule, pool, cycle)
        if text is not None:
            told.append((row["card_id"], pool.id, text))
    return told
