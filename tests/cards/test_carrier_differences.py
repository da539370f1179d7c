from datetime import UTC, datetime, timedelta

from tests.crowd import CROWDED, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.carrier_differences import list_our_cards


@whatever_is_known
async def test_a_page_of_ours_reads_no_more_cards_than_it_holds(
    postgres_dsn: str, statistics: Statistics
) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    async with watched_crowd(postgres_dsn, statistics) as watch:
        for after in (0, 10_000):
            ours = await list_our_cards(watch.pool, CROWDED, after, soon, 100)
            assert [card_id for card_id, _, _ in ours] == list(range(after + 2, after + 202, 2))
            watch.assert_frugal(200)
