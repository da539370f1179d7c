"""What a card's stops and resumes so far came to, as far as the next decision depends on it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from junhong_cmp.cards.model import StopReason
from junhong_cmp.cards.protection import PastStop
from junhong_cmp.db.pool import Conn, Pool

_PAST = """
    SELECT w.id, stop.reason, stop.cycle, stop.at, last.status, last.updated_at, last.sends,
        EXISTS (
            SELECT FROM card_operation AS r
            WHERE r.card_id = w.id AND r.id > stop.id AND r.kind = 'resume' AND r.status = 'done'
                AND r.reason = 'limit_raised') AS lifted
    FROM unnest($1::bigint[]) AS w (id)
        LEFT JOIN LATERAL (
            SELECT id, reason, cycle, coalesce(verified_at, updated_at) AS at FROM card_operation
            WHERE card_id = w.id AND kind = 'stop' AND status = 'done'
            ORDER BY requested_at DESC, id DESC LIMIT 1) AS stop ON true
        LEFT JOIN LATERAL (
            SELECT status, updated_at, sends FROM card_operation
            WHERE card_id = w.id ORDER BY requested_at DESC, id DESC LIMIT 1) AS last ON true
"""


@dataclass(frozen=True, slots=True)
class PastOperations:
    """A card's last stop that worked, and when its last operation failed, if that was the last word."""

    last_stop: PastStop | None = None
    failed_at: datetime | None = None


async def find_past_operations(conn: Conn | Pool, card_ids: Collection[int]) -> dict[int, PastOperations]:
    """Return the past of every card asked about."""
    return {row["id"]: _past(row) for row in await conn.fetch(_PAST, list(card_ids))}


def _past(row: asyncpg.Record) -> PastOperations:
    stop = None
    if row["reason"] is not None:
        stop = PastStop(StopReason(row["reason"]), row["cycle"], row["at"], row["lifted"])
    has_failed = row["status"] in {"failed", "unknown"} and row["sends"] > 0  # unsent, nobody refused it
    return PastOperations(stop, row["updated_at"] if has_failed else None)
