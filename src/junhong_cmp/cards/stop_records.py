"""Stops and resumes that have worked, written to their cards."""

from datetime import datetime

from junhong_cmp.cards.model import CardStatus, StopReason
from junhong_cmp.db.pool import Conn

# A card the carrier has cancelled meanwhile stays cancelled. The history gets a row only for a change.
_RECORD = """
    WITH before AS (
        SELECT id, status, carrier_status_raw FROM iot_card
        WHERE id = $1 AND deleted_at IS NULL AND status NOT IN ('pre_cancelled', 'cancelled')
        FOR NO KEY UPDATE),
    changed AS (
        UPDATE iot_card AS c SET
            status = $2, stop_reason = $3, version = c.version + 1, updated_at = now(),
            status_changed_at = CASE WHEN c.status <> $2 THEN $4::timestamptz ELSE c.status_changed_at END
        FROM before WHERE c.id = before.id AND (c.status, c.stop_reason) IS DISTINCT FROM ($2, $3)
        RETURNING c.id)
    INSERT INTO card_status_history (card_id, old_status, new_status, old_raw, new_raw, observed_at)
    SELECT b.id, b.status, $2, b.carrier_status_raw, b.carrier_status_raw, $4
    FROM before AS b JOIN changed ON changed.id = b.id WHERE b.status <> $2
"""


async def record_stopped(conn: Conn, card_id: int, reason: StopReason, at: datetime) -> None:
    """Write down that the card is out of service, and why."""
    await conn.execute(_RECORD, card_id, CardStatus.SUSPENDED, reason, at)


async def record_resumed(conn: Conn, card_id: int, at: datetime) -> None:
    """Write down that the card is in service again."""
    await conn.execute(_RECORD, card_id, CardStatus.ACTIVE, StopReason.NONE, at)
