"""The calls made for an operation, noted before each is made."""

from datetime import datetime

from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.operation_store import OpenOperation

# Only one sender finds it unsent.
_BEGIN = """
    UPDATE card_operation AS o SET sent_at = $2, sends = o.sends + 1, updated_at = $2
    WHERE o.id = $1 AND o.status = 'pending' AND o.sent_at IS NULL
    RETURNING o.sends
"""
_LAST_SENT = "SELECT max(sent_at) FROM card_operation WHERE card_id = $1 AND id <> $2"
# As if it had never been sent.
_WITHDRAW = """
    UPDATE card_operation SET sent_at = NULL, sends = greatest(sends - 1, 0), error = $2, updated_at = $3
    WHERE id = $1 AND status = 'pending'
"""


async def find_last_sent(pool: Pool, card_id: int, *, apart_from: int = 0) -> datetime | None:
    """Return when the card's carrier was last sent an operation, the one of that id left out."""
    last: datetime | None = await pool.fetchval(_LAST_SENT, card_id, apart_from)
    return last


async def begin_sending(pool: Pool, operation: OpenOperation, now: datetime) -> int | None:
    """Note that it is about to be sent; return for which time, None when somebody else is sending it.

    The note is on disk when this returns, also where the database may lose its last commits: a note that was
    lost would have the same operation sent twice.
    """
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("SET LOCAL synchronous_commit = on")
        sends: int | None = await conn.fetchval(_BEGIN, operation.id, now)
    return sends


async def withdraw_operation(pool: Pool, operation: OpenOperation, error: str, now: datetime) -> None:
    """Note that the call begun last was certainly not made."""
    await pool.execute(_WITHDRAW, operation.id, error, now)
