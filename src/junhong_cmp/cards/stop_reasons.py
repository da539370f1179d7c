"""Why a card is stopped, when all the carrier says is that it is."""

from collections.abc import Collection, Mapping
from typing import Final

from junhong_cmp.cards.model import CardStatus, StopReason
from junhong_cmp.db.pool import Conn

_RUNNING: Final = frozenset({CardStatus.INVENTORY, CardStatus.TESTING, CardStatus.READY, CardStatus.ACTIVE})
# The last one that may have reached the carrier: if that was a stop, it is why the card is stopped. One that
# found the card stopped already (done, with a remark) is not. Card by card: all operations would be read for
# a hundred cards, as long as it is not known how many a card has.
_ORDERED = """
    SELECT w.card_id, last.kind, last.reason
    FROM unnest($1::bigint[]) AS w (card_id)
        CROSS JOIN LATERAL (
            SELECT kind, reason FROM card_operation
            WHERE card_id = w.card_id
                AND (status = 'sent' OR (status = 'done' AND error IS NULL)
                    OR (status IN ('pending', 'unknown') AND (sent_at IS NOT NULL OR sends > 0)))
            ORDER BY requested_at DESC, id DESC LIMIT 1) AS last
"""


def stop_reason_after(reason: StopReason, status: CardStatus, ordered: StopReason | None) -> StopReason:
    """Return why a card whose reason was ``reason`` is stopped, now that its carrier reports ``status``.

    ``ordered`` is what the card's last stop was for, if nothing came after it.
    """
    if status in _RUNNING:
        return StopReason.NONE
    if status is CardStatus.SUSPENDED and reason is StopReason.NONE:
        return StopReason.CARRIER if ordered is None else ordered
    return reason


async def find_ordered_stops(conn: Conn, card_ids: Collection[int]) -> Mapping[int, StopReason]:
    """Return what the last operation of each card was for, where that was a stop."""
    if not card_ids:
        return {}
    rows = await conn.fetch(_ORDERED, list(card_ids))
    return {row["card_id"]: StopReason(row["reason"]) for row in rows if row["kind"] == "stop"}
