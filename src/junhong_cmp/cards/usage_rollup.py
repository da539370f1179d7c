"""Usage held to agree with itself: card, day, cycle and pool, in PostgreSQL.

A card's state is what counts. Every growth is written to the day and to the cycle in one transaction, and
the first reading of a card to its cycle alone; so the days of a card never hold more than its cycles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from junhong_cmp.cards.usage import START_NOISE, CycleId
from junhong_cmp.db.pool import Conn, Pool

_PAGE_END = """
    SELECT max(id) FROM (SELECT id FROM iot_card WHERE id > $1 ORDER BY id LIMIT $2) AS page
"""
_DIFFERING = """
    SELECT c.id FROM iot_card AS c
        LEFT JOIN card_usage_cycle AS u ON u.card_id = c.id AND u.cycle = c.cycle
    WHERE c.id > $1 AND c.id <= $2 AND c.deleted_at IS NULL AND c.cycle IS NOT NULL
        AND u.used_kb IS DISTINCT FROM c.cycle_used_kb
    ORDER BY c.id
"""
# A reading being written holds its card's row: what is compared here is never half of it.
_LOCK = "SELECT id FROM iot_card WHERE id = ANY ($1::bigint[]) ORDER BY id FOR SHARE"
_MEND = """
    INSERT INTO card_usage_cycle AS u (card_id, cycle, used_kb)
    SELECT id, cycle, cycle_used_kb FROM iot_card
    WHERE id = ANY ($1::bigint[]) AND deleted_at IS NULL AND cycle IS NOT NULL
    ORDER BY id
    ON CONFLICT (card_id, cycle) DO UPDATE SET used_kb = excluded.used_kb, updated_at = now()
        WHERE u.used_kb <> excluded.used_kb
"""
_UNCOVERED = """
    SELECT c.id
    FROM iot_card AS c
        JOIN unnest($3::bigint[], $4::date[], $5::text[]) AS w (account_id, first_day, first_cycle)
            ON w.account_id = c.account_id
        CROSS JOIN LATERAL (
            SELECT sum(used_kb) AS kb FROM card_usage_daily
            WHERE card_id = c.id AND day >= w.first_day) AS days
        CROSS JOIN LATERAL (
            SELECT sum(used_kb) AS kb FROM card_usage_cycle
            WHERE card_id = c.id AND cycle >= w.first_cycle) AS cycles
    WHERE c.id > $1 AND c.id <= $2 AND c.deleted_at IS NULL AND days.kb > coalesce(cycles.kb, 0)
    ORDER BY c.id
"""
_POOLS = """
    WITH used AS (
        SELECT p.id, coalesce(sum(c.cycle_used_kb), 0)::bigint AS kb
        FROM data_pool AS p
            LEFT JOIN iot_card AS c ON c.pool_id = p.id AND c.cycle = $2 AND c.deleted_at IS NULL
        WHERE p.account_id = $1 GROUP BY p.id)
    UPDATE data_pool AS p SET cycle = $2, used_kb = used.kb, updated_at = now()
    FROM used WHERE p.id = used.id AND (p.cycle, p.used_kb) IS DISTINCT FROM ($2, used.kb)
"""

_ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RollupWindow:
    """From which cycle on an account's cards are added up; late usage of the cycle before it is left out."""

    account_id: int
    first_cycle: CycleId

    @property
    def first_day(self) -> date:
        """The first day none of whose usage can belong to an earlier cycle."""
        return date.fromisoformat(self.first_cycle) + START_NOISE + _ONE_DAY


async def find_page_end(pool: Pool, after_id: int, page: int) -> int | None:
    """Return the last card id of the page after ``after_id``; None when there are no more cards."""
    last: int | None = await pool.fetchval(_PAGE_END, after_id, page)
    return last


async def find_differing(pool: Pool, after_id: int, last_id: int) -> list[int]:
    """Return the cards whose open cycle does not hold what the card itself says."""
    return [row["id"] for row in await pool.fetch(_DIFFERING, after_id, last_id)]


async def mend_cycles(conn: Conn, card_ids: Sequence[int]) -> int:
    """Bring the cards' open cycles in line with the cards, in the caller's transaction; return how many."""
    await conn.execute(_LOCK, card_ids)
    status = await conn.execute(_MEND, card_ids)
    return int(status.rpartition(" ")[2])


async def find_uncovered(
    pool: Pool, after_id: int, last_id: int, windows: Sequence[RollupWindow]
) -> list[int]:
    """Return the cards whose days hold more than their cycles: something was lost or changed by hand."""
    rows = await pool.fetch(
        _UNCOVERED,
        after_id,
        last_id,
        [window.account_id for window in windows],
        [window.first_day for window in windows],
        [window.first_cycle for window in windows],
    )
    return [row["id"] for row in rows]


async def sum_pools(pool: Pool, account_id: int, cycle: CycleId) -> None:
    """Write down what the cards of each of the account's pools have used in the current cycle."""
    await pool.execute(_POOLS, account_id, cycle)
