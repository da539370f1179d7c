"""The cards of one account, page by page."""

from collections.abc import AsyncIterator

from junhong_cmp.cards.card_rows import card_from_row
from junhong_cmp.cards.model import Card
from junhong_cmp.db.pool import Pool

_PAGE = """
    SELECT * FROM iot_card
    WHERE account_id = $1 AND id > $2 AND polling_enabled AND deleted_at IS NULL
    ORDER BY id LIMIT $3
"""


async def stream_account_cards(pool: Pool, account_id: int, *, page: int = 1000) -> AsyncIterator[list[Card]]:
    """Yield pages of the account's live cards with polling enabled, by ascending id."""
    after_id = 0
    while rows := await pool.fetch(_PAGE, account_id, after_id, page):
        after_id = rows[-1]["id"]
        yield [card_from_row(row) for row in rows]
