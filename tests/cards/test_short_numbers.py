"""Which numbers of 19 characters do not say which card they mean."""

from tests.cards.inventory import add_account
from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.model import NewCard
from junhong_cmp.cards.short_numbers import find_ambiguous
from junhong_cmp.cards.store import delete_card, insert_cards
from junhong_cmp.db.pool import Pool

SHORT = "8986000000000000001"


async def test_a_short_number_of_two_cards_names_none(pool: Pool) -> None:
    account = await add_account(pool)
    async with pool.acquire() as conn:
        async with conn.transaction():
            first, second = await insert_cards(
                conn, account.id, [NewCard(iccid=SHORT + last) for last in ("0", "8")]
            )
        assert await find_ambiguous(conn, [SHORT, first.iccid, "8986000000000000002"]) == {SHORT}
        assert await find_ambiguous(conn, [second.iccid]) == set()
        await delete_card(conn, first.id)
        assert await find_ambiguous(conn, [SHORT]) == set()
        await conn.execute("UPDATE iot_card SET deleted_at = NULL, iccid = iccid19 WHERE id = $1", first.id)
        assert await find_ambiguous(conn, [SHORT]) == set(), "one card has this very number"


@whatever_is_known
async def test_no_cards_with_other_numbers_are_read(postgres_dsn: str, statistics: Statistics) -> None:
    numbers = [f"{8986000000000000000 + number}" for number in range(5000, 5100)]
    async with watched_crowd(postgres_dsn, statistics) as watch:
        async with watch.pool.acquire() as conn:
            assert await find_ambiguous(conn, numbers) == set()
        watch.assert_frugal(200)
