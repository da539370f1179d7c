"""Alert rules and the alerts raised, in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from junhong_cmp.cards.alerts import AlertKind, AlertRule
from junhong_cmp.cards.card_rows import card_from_row
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.index_order import fetch_in_index_order
from junhong_cmp.db.pool import Conn, Pool

_RULES = """
    SELECT id, name, kind, account_id, category, level, threshold FROM alert_rule
    WHERE enabled AND kind = ANY ($1::text[]) ORDER BY id
"""
# OFFSET 0 has the alerts raised looked up card by card: joined, they would all be read for each page.
_CANDIDATES = """
    SELECT c.* FROM iot_card AS c
    WHERE c.account_id = $1 AND c.id > $2 AND c.deleted_at IS NULL
        AND ($3::text IS NULL OR c.category = $3)
        AND $4::float8 >= 0 AND $5::timestamptz IS NOT NULL
        AND {condition}
        AND NOT EXISTS (
            SELECT FROM alert_event AS e
            WHERE e.card_id = c.id AND e.rule_id = $7 AND e.cycle = $6 AND e.level = $8
            OFFSET 0)
    ORDER BY c.id
    LIMIT $9
"""
_CONDITIONS: Final[Mapping[AlertKind, str]] = {
    AlertKind.THRESHOLD: "c.cycle = $6 AND c.threshold_kb > 0 AND c.cycle_used_kb >= c.threshold_kb * $4",
    AlertKind.PLAN_USAGE: "c.cycle = $6 AND EXISTS (SELECT FROM data_plan AS p"
    " WHERE p.account_id = c.account_id AND p.name = c.plan AND c.cycle_used_kb >= p.quota_kb * $4)",
    AlertKind.STALE_DATA: "c.polling_enabled"
    " AND coalesce(c.carddata_succeeded_at, c.created_at) <= $5 - $4 * interval '1 hour'",
    AlertKind.API_FAILURE: "c.polling_enabled"
    " AND greatest(c.carddata_fail_count, c.cardstatus_fail_count, c.realname_fail_count)"
    " >= greatest(1, $4)",
    AlertKind.EXPIRY: "c.expires_at <= $5 + $4 * interval '1 day'",
}
_RAISE = """
    INSERT INTO alert_event (rule_id, card_id, cycle, level, message, raised_at)
    SELECT $1, c.id, $2, $3, n.message, $6
    FROM unnest($4::bigint[], $5::text[]) AS n (card_id, message) JOIN iot_card AS c ON c.id = n.card_id
    ON CONFLICT (card_id, rule_id, cycle, level) DO NOTHING
    RETURNING card_id
"""


async def list_alert_rules(pool: Pool, kinds: Collection[AlertKind]) -> list[AlertRule]:
    """Return the enabled rules of these kinds."""
    return [
        AlertRule(**{**row, "kind": AlertKind(row["kind"])}) for row in await pool.fetch(_RULES, list(kinds))
    ]


async def find_alert_candidates(
    pool: Pool, rule: AlertRule, place: tuple[int, CycleId, int], now: datetime, limit: int
) -> list[Card]:
    """Return cards the rule may speak about and has not yet, by id; a rule about pools has no cards here.

    ``place`` is the account, its current cycle, and the card id to go on after.
    """
    account_id, cycle, after_id = place
    rows = await fetch_in_index_order(
        pool,
        _CANDIDATES.format(condition=_CONDITIONS[rule.kind]),
        account_id,
        after_id,
        rule.category,
        rule.threshold,
        now,
        cycle,
        rule.id,
        rule.level,
        limit,
    )
    return [card_from_row(row) for row in rows]


async def raise_alerts(
    conn: Conn, rule: AlertRule, cycle: CycleId, texts: Sequence[tuple[int, str]], now: datetime
) -> int:
    """Raise an alert for each (card id, text) without one of this rule, cycle, level; return how many."""
    cards, messages = [card_id for card_id, _ in texts], [text for _, text in texts]
    return len(await conn.fetch(_RAISE, rule.id, cycle, rule.level, cards, messages, now))
