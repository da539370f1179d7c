from contextlib import aclosing

from tests.cards.inventory import NOON, add_account, add_cards, hours
from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.model import CardStatus, NewCard, PollTopic, RealNameStatus
from junhong_cmp.cards.roster import (
    CardProfile,
    find_in_roster,
    profile_of,
    progress_columns,
    roster_row,
    stream_roster,
)
from junhong_cmp.cards.store import delete_card, insert_cards, load_cards, set_polling_enabled
from junhong_cmp.db.pool import Pool


async def test_it_passes_over_deleted_and_disabled_cards_in_bounded_pages(pool: Pool) -> None:
    cards = await add_cards(pool, await add_account(pool), 10)
    async with pool.acquire() as conn:
        await delete_card(conn, cards[2].id)
        await set_polling_enabled(conn, cards[5].id, enabled=False)
    pages = [[row[0] for row in page] async for page in stream_roster(pool, page=3)]
    expected = [card.id for index, card in enumerate(cards) if index not in {2, 5}]
    assert [len(page) for page in pages] == [3, 3, 2]
    assert [each for page in pages for each in page] == expected
    rest = [row[0] async for page in stream_roster(pool, after_id=expected[4], page=3) for row in page]
    assert rest == expected[5:]
    assert set(await find_in_roster(pool, [card.id for card in cards])) == set(expected)


async def test_cards_inserted_while_streaming_are_met(pool: Pool) -> None:
    account = await add_account(pool)
    await add_cards(pool, account, 4)
    seen: list[int] = []
    inserted: list[int] = []
    async for page in stream_roster(pool, page=2):
        if not seen:
            async with pool.acquire() as conn, conn.transaction():
                new = await insert_cards(conn, account.id, [NewCard(iccid="8986001234567890123")])
            inserted = [card.id for card in new]
        seen += [row[0] for row in page]
    assert len(seen) == 5
    assert seen[-1:] == inserted


async def test_a_stream_left_early_gives_its_connection_back(pool: Pool) -> None:
    await add_cards(pool, await add_account(pool), 4)
    async with aclosing(stream_roster(pool, page=1)) as pages:
        async for _ in pages:
            break
    assert pool.get_idle_size() == pool.get_size()


async def test_a_row_tells_what_decides_about_polling_and_how_each_topic_fares(pool: Pool) -> None:
    account = await add_account(pool)
    (card,) = await add_cards(pool, account, 1)
    await pool.execute(
        "UPDATE iot_card SET category = 'meter', status = 'active', real_name_required = true,"
        " real_name_status = 'verified', orphan = true,"
        " carddata_attempted_at = $1, carddata_succeeded_at = $2, carddata_fail_count = 3,"
        " realname_succeeded_at = $2",
        hours(1),
        NOON,
    )
    row = (await find_in_roster(pool, [card.id]))[card.id]
    assert profile_of(row) == CardProfile(
        account_id=account.id,
        category="meter",
        status=CardStatus.ACTIVE,
        real_name_required=True,
        real_name_status=RealNameStatus.VERIFIED,
        orphan=True,
    )
    assert profile_of(row).polling_enabled
    polls = {topic: tuple(row[column] for column in progress_columns(topic)) for topic in PollTopic}
    assert polls == {
        PollTopic.CARDDATA: (hours(1).timestamp() * 1000, 3),
        PollTopic.CARDSTATUS: (None, 0),
        PollTopic.REALNAME: (NOON.timestamp() * 1000, 0),
    }
    whole_card = (await load_cards(pool, [card.id]))[card.id]
    assert roster_row(whole_card) == tuple(row)


@whatever_is_known
async def test_a_page_reads_no_more_cards_than_it_holds(postgres_dsn: str, statistics: Statistics) -> None:
    async with watched_crowd(postgres_dsn, statistics) as watch:
        async with aclosing(stream_roster(watch.pool, page=100)) as pages:
            assert [row[0] for row in await anext(pages)] == list(range(1, 101))
            assert [row[0] for row in await anext(pages)] == list(range(101, 201))
        watch.assert_frugal(100)
        assert len(await find_in_roster(watch.pool, range(5000, 5100))) == 100
        watch.assert_frugal(200)
