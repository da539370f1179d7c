"""Stop and resume operations in PostgreSQL: placed before they are sent, settled when their end is known."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from junhong_cmp.cards.model import StopReason
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.polling.operation_rules import OperationKind, OperationStatus, Verdict

_COLUMNS = """
    o.id, o.kind, o.reason, o.request_id, o.requested_by, o.status, o.requested_at, o.sent_at, o.sends,
    c.id AS card_id, c.account_id, c.iccid, c.msisdn
"""
_FROM = "FROM card_operation AS o JOIN iot_card AS c ON c.id = o.card_id"
# So many of each account, and of those sent and those not: where many wait, the others get their turn.
_TO_ASK = f"""
    SELECT * FROM (
        SELECT {_COLUMNS}, o.updated_at, row_number() OVER (
            PARTITION BY c.account_id, o.sent_at IS NULL ORDER BY o.updated_at, o.id) AS place
        {_FROM}
        WHERE o.status IN ('pending', 'sent') AND coalesce(o.sent_at, o.updated_at) < $1
            AND o.kind IN ('stop', 'resume') AND c.deleted_at IS NULL) AS open
    WHERE place <= $2
    ORDER BY updated_at, id
"""  # noqa: S608 - columns from above
# Nobody will be asked about them any more; what was sent may have been done.
_END_OF_DELETED = """
    UPDATE card_operation AS o
    SET status = CASE WHEN o.sent_at IS NULL THEN 'failed' ELSE 'unknown' END, error = '卡已删除',
        updated_at = $1
    FROM iot_card AS c
    WHERE c.id = o.card_id AND c.deleted_at IS NOT NULL AND o.status IN ('pending', 'sent')
    RETURNING o.id
"""
_OF_CARD = f"""
    SELECT {_COLUMNS} {_FROM} WHERE o.card_id = $1 AND (o.status IN ('pending', 'sent') OR o.request_id = $2)
    ORDER BY o.id
"""
_PLACE = """
    INSERT INTO card_operation (card_id, kind, reason, request_id, requested_by, cycle, requested_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING
"""
# The status asked about: a sender or another follow-up may have been faster.
_SETTLE = """
    UPDATE card_operation
    SET status = $3, error = $4, attempts = attempts + 1, updated_at = $5::timestamptz,
        verified_at = CASE WHEN $3 = 'done' THEN $5::timestamptz ELSE verified_at END,
        sent_at = CASE WHEN $6 THEN NULL ELSE sent_at END
    WHERE id = $1 AND status = $2
    RETURNING true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOperation:
    """An operation to be placed."""

    card_id: int
    kind: OperationKind
    reason: str
    request_id: str
    cycle: CycleId | None
    requested_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOperation:
    """An operation that has come to no end yet; one with ``sent_at`` may have reached the carrier."""

    id: int
    kind: OperationKind
    reason: str
    request_id: str
    requested_by: str | None
    status: OperationStatus
    requested_at: datetime
    sent_at: datetime | None
    sends: int
    account_id: int
    card: CardRef

    @property
    def stop_reason(self) -> StopReason:
        """What a stop is for."""
        return StopReason(self.reason)

    def age(self, now: datetime) -> timedelta:
        """Return how long ago it was ordered."""
        return now - self.requested_at


async def list_open_operations(pool: Pool, before: datetime, limit: int) -> list[OpenOperation]:
    """Return operations placed or sent before then, those looked at longest ago first.

    ``limit`` bounds those of each account that were sent, and those that were not.
    """
    return [_operation(row) for row in await pool.fetch(_TO_ASK, before, limit)]


async def end_operations_of_deleted_cards(pool: Pool, now: datetime) -> int:
    """End what is under way for cards that are no longer ours; return how many operations that were."""
    return len(await pool.fetch(_END_OF_DELETED, now))


async def find_operations(pool: Pool, card_id: int, request_id: str = "") -> list[OpenOperation]:
    """Return the card's operation under way, if any, and the one with that request id, whatever its state."""
    return [_operation(row) for row in await pool.fetch(_OF_CARD, card_id, request_id)]


async def place_operation(pool: Pool, new: NewOperation, now: datetime) -> None:
    """Write an operation down before anything is sent; without effect while another of the card is open."""
    await pool.execute(
        _PLACE, new.card_id, new.kind, new.reason, new.request_id, new.requested_by, new.cycle, now
    )


async def settle_operation(
    conn: Conn | Pool, operation: OpenOperation, verdict: Verdict, now: datetime
) -> bool:
    """Write down what became of an operation; False when somebody else did in the meantime."""
    return bool(
        await conn.fetchval(
            _SETTLE, operation.id, operation.status, verdict.status, verdict.error, now, verdict.send_again
        )
    )


def _operation(row: asyncpg.Record) -> OpenOperation:
    return OpenOperation(
        id=row["id"],
        kind=OperationKind(row["kind"]),
        reason=row["reason"],
        request_id=row["request_id"],
        requested_by=row["requested_by"],
        status=OperationStatus(row["status"]),
        requested_at=row["requested_at"],
        sent_at=row["sent_at"],
        sends=row["sends"],
        account_id=row["account_id"],
        card=CardRef(row["card_id"], row["iccid"], row["msisdn"]),
    )
