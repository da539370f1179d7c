"""Billing cycles that are over: when they may be closed, and closing them in PostgreSQL."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from junhong_cmp.cards.usage import (
    START_NOISE,
    BillingTerms,
    CycleId,
    billing_cycle,
    cycle_start,
    previous_cycle,
)
from junhong_cmp.db.index_order import keep_index_order
from junhong_cmp.db.pool import Conn

# Nothing is joined, for the planner might read a whole table to find a hundred rows: OFFSET 0 has cards
# looked up one by one, and what is locked is found again by its place.
_CLOSE: Final = """
    UPDATE card_usage_cycle SET closed = true, updated_at = now()
    WHERE ctid = ANY (ARRAY(
        SELECT u.ctid FROM card_usage_cycle AS u
        WHERE NOT u.closed AND u.cycle < $2 AND (u.cycle, u.card_id) > ($4, $5)
            AND EXISTS (SELECT FROM iot_card AS c WHERE c.id = u.card_id AND c.account_id = $1 OFFSET 0)
        ORDER BY u.cycle, u.card_id
        LIMIT $3
        FOR NO KEY UPDATE))
    RETURNING cycle, card_id
"""


class CycleOfCard(NamedTuple):
    """A card's cycle; they are ordered by cycle, then by card."""

    cycle: CycleId
    card_id: int


BEFORE_ALL: Final = CycleOfCard(CycleId(""), 0)
"""Comes before every card's cycle."""


def first_open_cycle(now: datetime, terms: BillingTerms, usage_lag: timedelta = timedelta()) -> CycleId:
    """Return the oldest cycle that readings may still add to; every earlier one is over.

    Carriers go on showing the old cycle for up to three days, so it is kept open for as long; one whose
    figures are late by ``usage_lag`` begins the new cycle, and those days, so much later.
    """
    current = billing_cycle(now, terms.billing_day, terms.tz)
    if now - cycle_start(current, terms.tz) >= START_NOISE + usage_lag:
        return current
    return previous_cycle(current, terms)


async def close_cycles(
    conn: Conn, account_id: int, before: CycleId, limit: int, after: CycleOfCard = BEFORE_ALL
) -> list[CycleOfCard]:
    """Close up to ``limit`` open cycles of the account's cards that began before; return them in order.

    Call it in a transaction, and again ``after`` the last one: what was closed is not gone through anew.

    A card that is read in a new cycle closes its old one itself; this is for those that are not. A late
    reading of a closed cycle opens it again, with its new total, and the next call closes it.
    """
    await keep_index_order(conn)
    closed = await conn.fetch(_CLOSE, account_id, before, limit, *after)
    return sorted(CycleOfCard(CycleId(row["cycle"]), row["card_id"]) for row in closed)
