"""Where a carrier's list of an account's cards and ours differ; recorded, never acted upon."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from junhong_cmp.cards.model import Card, CardStatus
from junhong_cmp.db.index_order import fetch_in_index_order
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.rows import execute_rows

# Live cards that were there before the list was asked for, page by page.
_OURS = """
    SELECT id, iccid, status FROM iot_card
    WHERE account_id = $1 AND id > $2 AND deleted_at IS NULL AND created_at < $3
    ORDER BY id LIMIT $4
"""
_RECORD = """
    INSERT INTO carrier_card_difference AS d (
        account_id, iccid, kind, card_id, carrier_status, our_status, first_seen_at, last_seen_at)
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[],
        $7::timestamptz[], $7::timestamptz[])
    ON CONFLICT (account_id, iccid, kind) DO UPDATE SET
        card_id = excluded.card_id, carrier_status = excluded.carrier_status,
        our_status = excluded.our_status, last_seen_at = excluded.last_seen_at, resolved_at = NULL,
        first_seen_at = CASE WHEN d.resolved_at IS NULL THEN d.first_seen_at ELSE excluded.first_seen_at END
"""
_RESOLVE = """
    UPDATE carrier_card_difference SET resolved_at = $2
    WHERE account_id = $1 AND resolved_at IS NULL AND last_seen_at < $2
"""


class DifferenceKind(StrEnum):
    """The values of ``carrier_card_difference.kind``."""

    ONLY_AT_CARRIER = "only_at_carrier"
    ONLY_HERE = "only_here"
    STATUS_DIFFERS = "status_differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between the two lists."""

    kind: DifferenceKind
    iccid: str
    card_id: int | None = None
    carrier_status: str | None = None
    our_status: str | None = None


def compare_card(
    iccid: str, raw_status: str | None, status: str, card: Card | None, listed_from: datetime
) -> Difference | None:
    """Return how a card on the carrier's list differs from ours; None when it does not.

    A state unknown on either side tells nothing, and one that changed since ``listed_from`` may be right.
    """
    if card is None:
        return Difference(
            kind=DifferenceKind.ONLY_AT_CARRIER, iccid=iccid, carrier_status=raw_status or status
        )
    has_just_changed = card.status_changed_at is not None and card.status_changed_at >= listed_from
    if status == card.status or CardStatus.UNKNOWN in {status, card.status} or has_just_changed:
        return None
    return Difference(
        kind=DifferenceKind.STATUS_DIFFERS,
        iccid=card.iccid,
        card_id=card.id,
        carrier_status=raw_status or status,
        our_status=card.status,
    )


async def list_our_cards(
    pool: Pool, account_id: int, after_id: int, created_before: datetime, limit: int
) -> list[tuple[int, str, str]]:
    """Return id, number and state of the account's next cards."""
    rows = await fetch_in_index_order(pool, _OURS, account_id, after_id, created_before, limit)
    return [(row["id"], row["iccid"], row["status"]) for row in rows]


async def record_differences(
    conn: Conn, account_id: int, differences: Sequence[Difference], seen_at: datetime
) -> None:
    """Write differences down; one known already keeps the time it was first seen."""
    unique = {(difference.iccid, difference.kind): difference for difference in differences}
    rows = [
        (account_id, found.iccid, found.kind, found.card_id, found.carrier_status, found.our_status, seen_at)
        for _, found in sorted(unique.items())
    ]
    await execute_rows(conn, _RECORD, rows)


async def resolve_differences(conn: Conn | Pool, account_id: int, seen_before: datetime) -> int:
    """Note that differences last seen before then are there no more; return how many."""
    status = await conn.execute(_RESOLVE, account_id, seen_before)
    return int(status.rpartition(" ")[2])
