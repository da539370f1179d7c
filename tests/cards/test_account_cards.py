from contextlib import aclosing

from tests.crowd import CROWDED, Statistics, watched_crowd, whatever_is_known
from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.account_cards import CardGroup, count_card_groups, stream_account_cards
from junhong_cmp.cards.model import CardStatus, StopReason
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


async def test_cards_are_counted_by_account_state_and_reason(pool: Pool) -> None:
    mine, other = await add_account(pool, "mine"), await add_account(pool, "other")
    cards = await add_cards(pool, mine, 4)
    await add_cards(pool, other, 1, first=50)
    await pool.execute("UPDATE iot_card SET deleted_at = now() WHERE id = $1", cards[0].id)
    await pool.execute(
        "UPDATE iot_card SET status = 'suspended', stop_reason = 'pool' WHERE id = $1", cards[1].id
    )
    async with pool.acquire() as conn:
        groups = await count_card_groups(conn)
        assert await count_card_groups(conn, other.id) == groups[2:]
    assert groups == [
        CardGroup(mine.id, CardStatus.SUSPENDED, StopReason.POOL, 1),
        CardGroup(mine.id, CardStatus.UNKNOWN, StopReason.NONE, 2),
        CardGroup(other.id, CardStatus.UNKNOWN, StopReason.NONE, 1),
    ]


@whatever_is_known
async def test_a_page_reads_no_more_cards_than_it_holds(postgres_dsn: str, statistics: Statistics) -> None:
    async with (
        watched_crowd(postgres_dsn, statistics) as watch,
        aclosing(stream_account_cards(watch.pool, CROWDED, page=100)) as pages,
    ):
        for first in (2, 202):
            assert [card.id for card in await anext(pages)] == list(range(first, first + 200, 2))
            watch.assert_frugal(200)
