"""Locking the cards of a batch of observations and telling which observations still count."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import asyncpg

from junhong_cmp.cards.model import PollTopic
from junhong_cmp.cards.observations import RecordOutcome
from junhong_cmp.db.pool import Conn

# Ordered by id before locking, so that batches that share cards never deadlock. Not a plain
# FOR UPDATE: rows that refer to a card (imports, operations) need not wait for a poll.
_LOCK = """
    SELECT c.id, c.account_id, c.status, c.carrier_status_raw, c.stop_reason, c.real_name_status, c.orphan,
        c.not_found_count, c.cycle, c.cycle_used_kb, c.last_reading_kb, c.last_reading_at,
        c.previous_cycle_kb,
        c.carddata_attempted_at, c.carddata_succeeded_at, c.carddata_fail_count,
        c.cardstatus_attempted_at, c.cardstatus_succeeded_at, c.cardstatus_fail_count,
        c.realname_attempted_at, c.realname_succeeded_at, c.realname_fail_count,
        a.billing_day, a.tz
    FROM iot_card AS c JOIN carrier_account AS a ON a.id = c.account_id
    WHERE c.id = ANY ($1::bigint[]) AND c.deleted_at IS NULL
    ORDER BY c.id
    FOR NO KEY UPDATE OF c
"""


class Observation(Protocol):
    """What all observations have in common."""

    @property
    def card_id(self) -> int:
        """The card it is about."""
        ...

    @property
    def account_id(self) -> int:
        """The account it was asked through."""
        ...

    @property
    def observed_at(self) -> datetime:
        """When the answer, or its absence, was observed."""
        ...


async def admit(
    conn: Conn, topic: PollTopic, writes: Sequence[Observation], *, failed: bool = False
) -> list[asyncpg.Record | RecordOutcome]:
    """Lock the cards until the transaction ends; return per observation its card's row or its refusal.

    Refused: a card that was deleted or moved meanwhile; an observation older than what is
    known, or than another one in the batch; a failure that is counted already.
    """
    rows = {row["id"]: row for row in await conn.fetch(_LOCK, list({write.card_id for write in writes}))}
    newest: dict[int, int] = {}
    for index, write in enumerate(writes):
        best = newest.setdefault(write.card_id, index)
        if write.observed_at >= writes[best].observed_at:
            newest[write.card_id] = index
    admitted: list[asyncpg.Record | RecordOutcome] = []
    for index, write in enumerate(writes):
        row = rows.get(write.card_id)
        if row is None or row["account_id"] != write.account_id:
            admitted.append(RecordOutcome.GONE)
        elif newest[write.card_id] != index or _is_late(row, topic, write, failed=failed):
            admitted.append(RecordOutcome.SUPERSEDED)
        else:
            admitted.append(row)
    return admitted


def _is_late(row: asyncpg.Record, topic: PollTopic, write: Observation, *, failed: bool) -> bool:
    if failed:
        attempted_at: datetime | None = row[f"{topic}_attempted_at"]
        return attempted_at is not None and write.observed_at <= attempted_at
    succeeded_at: datetime | None = row[f"{topic}_succeeded_at"]
    return succeeded_at is not None and write.observed_at < succeeded_at
