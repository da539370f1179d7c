"""Writing usage readings down: in batches, each reading counted once however often it is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import asyncpg

from junhong_cmp.cards.locking import admit
from junhong_cmp.cards.model import PollTopic
from junhong_cmp.cards.observations import Recorded, RecordOutcome, UsageWrite
from junhong_cmp.cards.usage import BillingTerms, UsageChange, UsageState, apply_reading
from junhong_cmp.db.pool import Conn
from junhong_cmp.db.rows import execute_rows

_CARDS = """
    UPDATE iot_card AS c SET
        cycle = w.cycle, cycle_used_kb = w.cycle_used_kb,
        last_reading_kb = w.last_reading_kb, last_reading_at = w.last_reading_at,
        previous_cycle_kb = w.previous_kb,
        carddata_attempted_at = greatest(c.carddata_attempted_at, w.observed_at),
        carddata_succeeded_at = w.observed_at,
        carddata_fail_count =
            CASE WHEN c.carddata_attempted_at > w.observed_at THEN c.carddata_fail_count ELSE 0 END,
        orphan = false, not_found_count = 0, version = c.version + c.orphan::int, updated_at = now()
    FROM unnest(
        $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::bigint[],
        $7::timestamptz[])
        AS w (card_id, cycle, cycle_used_kb, last_reading_kb, last_reading_at, previous_kb, observed_at)
    WHERE c.id = w.card_id
"""
_DAILY = """
    INSERT INTO card_usage_daily AS d (card_id, day, used_kb)
    SELECT * FROM unnest($1::bigint[], $2::date[], $3::bigint[])
    ON CONFLICT (card_id, day) DO UPDATE SET used_kb = d.used_kb + excluded.used_kb, updated_at = now()
"""
_CYCLES = """
    INSERT INTO card_usage_cycle (card_id, cycle, used_kb, closed)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bool[])
    ON CONFLICT (card_id, cycle) DO UPDATE
        SET used_kb = excluded.used_kb, closed = excluded.closed, updated_at = now()
"""
_ANOMALIES = """
    INSERT INTO usage_anomaly (card_id, kind, reading_at, cycle, expected_kb, reading_kb)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[], $6::bigint[])
    ON CONFLICT (card_id, kind, reading_at) DO NOTHING
"""


async def record_usage(conn: Conn, writes: Sequence[UsageWrite]) -> list[Recorded]:
    """Apply readings to their cards by the rules of ``cards.usage``; one transaction.

    Raises:
        ValueError: for a negative reading; nothing of the batch is written then.

    """
    results: list[Recorded] = []
    effects = _Effects()
    async with conn.transaction():
        for write, row in zip(writes, await admit(conn, PollTopic.CARDDATA, writes), strict=True):
            if isinstance(row, RecordOutcome):
                results.append(Recorded(outcome=row))
                continue
            before = _state(row)
            terms = BillingTerms(row["billing_day"], ZoneInfo(row["tz"]))
            # A carrier's clock ahead of ours must not make later readings look old.
            reading_at = min(write.reading_at, write.observed_at)
            change = apply_reading(before, write.reading_kb, reading_at, terms)
            effects.add(write, before, change, terms)
            changed = change.state.cycle != before.cycle or row["orphan"]
            results.append(
                Recorded(
                    outcome=RecordOutcome.RECORDED,
                    changed=changed,
                    delta_kb=change.delta_kb,
                    cycle=change.state.cycle,
                    used_kb=change.state.cycle_used_kb,
                )
            )
        await effects.write(conn)
    return results


@dataclass(slots=True)
class _Effects:
    """The effects of a batch gather the rows that its readings write, table by table."""

    cards: list[tuple[object, ...]] = field(default_factory=list)
    daily: list[tuple[object, ...]] = field(default_factory=list)
    cycles: list[tuple[object, ...]] = field(default_factory=list)
    anomalies: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, write: UsageWrite, before: UsageState, change: UsageChange, terms: BillingTerms) -> None:
        card_id, after = write.card_id, change.state
        reading_at = min(write.reading_at, write.observed_at)
        last = (after.last_reading_kb, after.last_reading_at, after.previous_kb)
        self.cards.append((card_id, after.cycle, after.cycle_used_kb, *last, write.observed_at))
        if change.delta_kb:
            self.daily.append((card_id, reading_at.astimezone(terms.tz).date(), change.delta_kb))
        if change.closed is not None:
            self.cycles.append((card_id, *change.closed, True))
        if (after.cycle, after.cycle_used_kb) != (before.cycle, before.cycle_used_kb):
            self.cycles.append((card_id, after.cycle, after.cycle_used_kb, False))
        if change.anomaly is not None:
            figures = (before.cycle, before.cycle_used_kb, write.reading_kb)
            self.anomalies.append((card_id, change.anomaly, reading_at, *figures))

    async def write(self, conn: Conn) -> None:
        await execute_rows(conn, _CARDS, self.cards)
        await execute_rows(conn, _DAILY, self.daily)
        await execute_rows(conn, _CYCLES, self.cycles)
        await execute_rows(conn, _ANOMALIES, self.anomalies)


def _state(row: asyncpg.Record) -> UsageState:
    return UsageState(
        row["cycle"],
        row["cycle_used_kb"],
        row["last_reading_kb"],
        row["last_reading_at"],
        row["previous_cycle_kb"],
    )
