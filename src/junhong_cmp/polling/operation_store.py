"""Stop and resume operations whose outcome is not known yet, in PostgreSQL."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.polling.operation_rules import OperationStatus, Verdict

_OPEN = """
    SELECT o.id, o.request_id, o.status, o.requested_at, c.id AS card_id, c.account_id, c.iccid, c.msisdn
    FROM card_operation AS o JOIN iot_card AS c ON c.id = o.card_id
    WHERE o.status IN ('pending', 'sent') AND coalesce(o.sent_at, o.requested_at) < $1
    ORDER BY o.updated_at, o.id LIMIT $2
"""
# The status asked about: a sender or another follow-up may have been faster.
_SETTLE = """
    UPDATE card_operation
    SET status = $3, error = $4, attempts = attempts + 1, updated_at = now(),
        verified_at = CASE WHEN $3 = 'done' THEN $5::timestamptz ELSE verified_at END
    WHERE id = $1 AND status = $2
    RETURNING true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOperation:
    """An operation to be asked about."""

    id: int
    request_id: str
    status: OperationStatus
    requested_at: datetime
    account_id: int
    card: CardRef

    def age(self, now: datetime) -> timedelta:
        """Return how long ago it was ordered."""
        return now - self.requested_at


async def list_open_operations(pool: Pool, before: datetime, limit: int) -> list[OpenOperation]:
    """Return operations ordered or sent before then, those looked at longest ago first."""
    return [
        OpenOperation(
            id=row["id"],
            request_id=row["request_id"],
            status=OperationStatus(row["status"]),
            requested_at=row["requested_at"],
            account_id=row["account_id"],
            card=CardRef(row["card_id"], row["iccid"], row["msisdn"]),
        )
        for row in await pool.fetch(_OPEN, before, limit)
    ]


async def settle_operation(pool: Pool, operation: OpenOperation, verdict: Verdict, now: datetime) -> bool:
    """Write down what became of an operation; False when somebody else did in the meantime."""
    return bool(
        await pool.fetchval(_SETTLE, operation.id, operation.status, verdict.status, verdict.error, now)
    )
