"""Cards of a pool that have used something in their account's present cycle."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.db.pool import Pool


async def use(pool: Pool, account: CarrierAccount, cards: Sequence[Card], used_kb: int) -> None:
    """Let cards in service have used so much in the account's present cycle."""
    cycle = billing_cycle(datetime.now(UTC), account.billing_day, ZoneInfo(account.tz))
    await pool.execute(
        "UPDATE iot_card SET status = 'active', cycle = $1, cycle_used_kb = $2 WHERE id = ANY ($3::bigint[])",
        cycle,
        used_kb,
        [card.id for card in cards],
    )
