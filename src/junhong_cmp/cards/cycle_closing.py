"""Billing cycles that are over: when they may be closed, and closing them in PostgreSQL."""

from datetime import datetime, timedelta
from typing import Final

from junhong_cmp.cards.usage import (
    START_NOISE,
    BillingTerms,
    CycleId,
    billing_cycle,
    cycle_start,
    previous_cycle,
)
from junhong_cmp.db.pool import Conn

_CLOSE: Final = """
    WITH over AS (
        SELECT u.card_id, u.cycle
        FROM card_usage_cycle AS u JOIN iot_card AS c ON c.id = u.card_id
        WHERE NOT u.closed AND u.cycle < $2 AND c.account_id = $1
        ORDER BY u.card_id, u.cycle
        LIMIT $3
        FOR NO KEY UPDATE OF u)
    UPDATE card_usage_cycle AS u SET closed = true, updated_at = now()
    FROM over WHERE u.card_id = over.card_id AND u.cycle = over.cycle
"""


def first_open_cycle(now: datetime, terms: BillingTerms, usage_lag: timedelta = timedelta()) -> CycleId:
    """Return the oldest cycle that readings may still add to; every earlier one is over.

    Carriers go on showing the old cycle for up to three days, so it is kept open for as long; one whose
    figures are late by ``usage_lag`` begins the new cycle, and those days, so much later.
    """
    current = billing_cycle(now, terms.billing_day, terms.tz)
    if now - cycle_start(current, terms.tz) >= START_NOISE + usage_lag:
        return current
    return previous_cycle(current, terms)


async def close_cycles(conn: Conn, account_id: int, before: CycleId, limit: int) -> int:
    """Close up to ``limit`` open cycles of the account's cards that began before; return how many.

    A card that is read in a new cycle closes its old one itself; this is for those that are not. A late
    reading of a closed cycle opens it again, with its new total, and the next call closes it.
    """
    status = await conn.execute(_CLOSE, account_id, before, limit)
    return int(status.rpartition(" ")[2])
