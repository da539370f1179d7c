"""Writing down what polls found out: batches, an older observation never overwrites a newer one."""

from collections.abc import Sequence
from typing import Final

import asyncpg

from junhong_cmp.cards.locking import admit
from junhong_cmp.cards.model import CardStatus, PollTopic, StopReason
from junhong_cmp.cards.observations import (
    FailureWrite,
    RealNameWrite,
    Recorded,
    RecordOutcome,
    StatusWrite,
)
from junhong_cmp.cards.stop_reasons import find_ordered_stops, stop_reason_after
from junhong_cmp.db.pool import Conn
from junhong_cmp.db.rows import execute_rows

ORPHAN_AFTER: Final = 5
"""Times in a row the carrier must deny knowing a card before it counts as an orphan."""

_STATUS = """
    UPDATE iot_card AS c SET
        carrier_status_raw = w.raw, status = w.status, stop_reason = w.stop_reason,
        status_changed_at = CASE WHEN c.status <> w.status THEN w.observed_at ELSE c.status_changed_at END,
        cardstatus_attempted_at = greatest(c.cardstatus_attempted_at, w.observed_at),
        cardstatus_succeeded_at = w.observed_at,
        cardstatus_fail_count =
            CASE WHEN c.cardstatus_attempted_at > w.observed_at THEN c.cardstatus_fail_count ELSE 0 END,
        orphan = false, not_found_count = 0, version = c.version + w.changed::int, updated_at = now()
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bool[])
        AS w (card_id, raw, status, stop_reason, observed_at, changed)
    WHERE c.id = w.card_id
"""
_HISTORY = """
    INSERT INTO card_status_history (card_id, old_status, new_status, old_raw, new_raw, observed_at)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
"""
_REALNAME = """
    UPDATE iot_card AS c SET
        real_name_status = w.status,
        realname_attempted_at = greatest(c.realname_attempted_at, w.observed_at),
        realname_succeeded_at = w.observed_at,
        realname_fail_count =
            CASE WHEN c.realname_attempted_at > w.observed_at THEN c.realname_fail_count ELSE 0 END,
        orphan = false, not_found_count = 0, version = c.version + w.changed::int, updated_at = now()
    FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::bool[])
        AS w (card_id, status, observed_at, changed)
    WHERE c.id = w.card_id
"""
_FAILURE = """
    UPDATE iot_card AS c SET
        {topic}_attempted_at = w.observed_at, {topic}_fail_count = w.fail_count,
        not_found_count = w.not_found_count, orphan = w.orphan,
        version = c.version + (c.orphan <> w.orphan)::int, updated_at = now()
    FROM unnest($1::bigint[], $2::timestamptz[], $3::int[], $4::int[], $5::bool[])
        AS w (card_id, observed_at, fail_count, not_found_count, orphan)
    WHERE c.id = w.card_id
"""


async def record_status(conn: Conn, writes: Sequence[StatusWrite]) -> list[Recorded]:
    """Record card states, and in the history those that differ from before; one transaction."""
    results: list[Recorded] = []
    updates: list[tuple[object, ...]] = []
    history: list[tuple[object, ...]] = []
    async with conn.transaction():
        rows = await admit(conn, PollTopic.CARDSTATUS, writes)
        ordered = await find_ordered_stops(conn, _newly_stopped(writes, rows))
        for write, row in zip(writes, rows, strict=True):
            if isinstance(row, RecordOutcome):
                results.append(Recorded(outcome=row))
                continue
            is_new = (row["status"], row["carrier_status_raw"]) != (write.status, write.raw)
            changed = row["status"] != write.status or row["orphan"]
            reason = stop_reason_after(
                StopReason(row["stop_reason"]), write.status, ordered.get(write.card_id)
            )
            updates.append((write.card_id, write.raw, write.status, reason, write.observed_at, changed))
            if is_new:
                before = (row["status"], write.status, row["carrier_status_raw"], write.raw)
                history.append((write.card_id, *before, write.observed_at))
            results.append(Recorded(outcome=RecordOutcome.RECORDED, changed=changed))
        await execute_rows(conn, _STATUS, updates)
        await execute_rows(conn, _HISTORY, history)
    return results


async def record_realname(conn: Conn, writes: Sequence[RealNameWrite]) -> list[Recorded]:
    """Record real-name states; one transaction."""
    results: list[Recorded] = []
    updates: list[tuple[object, ...]] = []
    async with conn.transaction():
        for write, row in zip(writes, await admit(conn, PollTopic.REALNAME, writes), strict=True):
            if isinstance(row, RecordOutcome):
                results.append(Recorded(outcome=row))
                continue
            changed = row["real_name_status"] != write.status or row["orphan"]
            updates.append((write.card_id, write.status, write.observed_at, changed))
            results.append(Recorded(outcome=RecordOutcome.RECORDED, changed=changed))
        await execute_rows(conn, _REALNAME, updates)
    return results


async def record_failure(
    conn: Conn, topic: PollTopic, writes: Sequence[FailureWrite], *, orphan_after: int = ORPHAN_AFTER
) -> list[Recorded]:
    """Count failed polls of one topic; ``orphan_after`` denials in a row make a card an orphan.

    Any other failure says nothing about whether the carrier knows the card, so that count stays.
    """
    results: list[Recorded] = []
    updates: list[tuple[object, ...]] = []
    async with conn.transaction():
        for write, row in zip(writes, await admit(conn, topic, writes, failed=True), strict=True):
            if isinstance(row, RecordOutcome):
                results.append(Recorded(outcome=row))
                continue
            fail_count = row[f"{topic}_fail_count"] + 1
            not_found_count = row["not_found_count"] + write.not_found
            orphan = row["orphan"] or not_found_count >= orphan_after
            updates.append((write.card_id, write.observed_at, fail_count, not_found_count, orphan))
            results.append(
                Recorded(
                    outcome=RecordOutcome.RECORDED, changed=orphan != row["orphan"], fail_count=fail_count
                )
            )
        await execute_rows(conn, _FAILURE.format(topic=topic.value), updates)
    return results


def _newly_stopped(
    writes: Sequence[StatusWrite], rows: Sequence[asyncpg.Record | RecordOutcome]
) -> list[int]:
    """Return the cards reported as stopped of which nobody knows yet why."""
    return [
        write.card_id
        for write, row in zip(writes, rows, strict=True)
        if write.status is CardStatus.SUSPENDED
        and not isinstance(row, RecordOutcome)
        and row["stop_reason"] == StopReason.NONE
    ]
