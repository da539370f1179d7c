"""Alert rules, and what they have raised."""

from typing import Any

from junhong_cmp.db.pool import Pool


async def add_alert_rule(pool: Pool, kind: str, threshold: float, **columns: Any) -> int:
    fields = {"account_id": None, "category": None, "level": "warning", "enabled": True} | columns
    number: int = await pool.fetchval(
        "INSERT INTO alert_rule (name, kind, threshold, account_id, category, level, enabled) "
        "VALUES ($1, $1, $2, $3, $4, $5, $6) RETURNING id",
        kind,
        threshold,
        *fields.values(),
    )
    return number


async def events(pool: Pool) -> list[tuple[int, int, str, str]]:
    rows = await pool.fetch("SELECT rule_id, card_id, cycle, level FROM alert_event ORDER BY id")
    return [(row["rule_id"], row["card_id"], row["cycle"], row["level"]) for row in rows]
