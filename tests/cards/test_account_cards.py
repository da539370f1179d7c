from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.account_cards import stream_account_cards
from junhong_cmp.db.pool import Pool


async def test_pages_hold_the_accounts_enabled_live_cards(pool: Pool) -> None:
    mine, other = await add_account(pool, "mine"), await add_account(pool, "other")
    cards = await add_cards(pool, mine, 7)
    await add_cards(pool, other, 3, first=50)
    await pool.execute("UPDATE iot_card SET polling_enabled = false WHERE id = $1", cards[0].id)
    await pool.execute("UPDATE iot_card SET deleted_at = now() WHERE id = $1", cards[1].id)
    pages = [page async for page in stream_account_cards(pool, mine.id, page=2)]
    assert [[card.id for card in page] for page in pages] == [
        [cards[2].id, cards[3].id],
        [cards[4].id, cards[5].id],
        [cards[6].id],
    ]
