"""Readings put in as a poll would, and what is kept of them."""

from datetime import datetime

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.observations import UsageWrite
from junhong_cmp.cards.usage_records import record_usage
from junhong_cmp.db.pool import Pool


async def read(pool: Pool, cards: list[Card], used_kb: int, at: datetime) -> None:
    writes = [
        UsageWrite(
            card_id=card.id, account_id=card.account_id, reading_kb=used_kb, reading_at=at, observed_at=at
        )
        for card in cards
    ]
    async with pool.acquire() as conn:
        await record_usage(conn, writes)


async def cycles(pool: Pool, card: Card) -> list[tuple[str, int, bool]]:
    rows = await pool.fetch("SELECT * FROM card_usage_cycle WHERE card_id = $1 ORDER BY cycle", card.id)
    return [(row["cycle"], row["used_kb"], row["closed"]) for row in rows]
