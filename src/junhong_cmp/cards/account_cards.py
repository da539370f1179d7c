"""The cards of accounts: of one page by page, of all counted."""

from collections.abc import AsyncGenerator
from typing import NamedTuple

from junhong_cmp.cards.card_rows import card_from_row
from junhong_cmp.cards.model import Card, CardStatus, StopReason
from junhong_cmp.db.index_order import fetch_in_index_order
from junhong_cmp.db.pool import Conn, Pool

_PAGE = """
    SELECT * FROM iot_card
    WHERE account_id = $1 AND id > $2 AND polling_enabled AND deleted_at IS NULL
    ORDER BY id LIMIT $3
"""
_COUNT = """
    SELECT account_id, status, stop_reason, count(*) AS cards FROM iot_card
    WHERE ($1::bigint IS NULL OR account_id = $1) AND deleted_at IS NULL
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


class CardGroup(NamedTuple):
    """How many live cards of an account are in one state for one reason."""

    account_id: int
    status: CardStatus
    stop_reason: StopReason
    cards: int


async def count_card_groups(conn: Conn, account_id: int | None = None) -> list[CardGroup]:
    """Count the live cards of one account, or of each, by what they are and why they are stopped."""
    return [
        CardGroup(row["account_id"], CardStatus(row["status"]), StopReason(row["stop_reason"]), row["cards"])
        for row in await conn.fetch(_COUNT, account_id)
    ]


async def stream_account_cards(
    pool: Pool, account_id: int, *, page: int = 1000
) -> AsyncGenerator[list[Card], None]:
    """Yield pages of the account's live cards with polling enabled, by ascending id."""
    after_id = 0
    while rows := await fetch_in_index_order(pool, _PAGE, account_id, after_id, page):
        after_id = rows[-1]["id"]
        yield [card_from_row(row) for row in rows]
