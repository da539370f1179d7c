import asyncio
from itertools import product

import pytest
from tests.cards.inventory import add_account, add_cards, reload
from tests.crowd import CROWDED, Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.model import CardStatus, NewCard, PollProgress, PollTopic, RealNameStatus, StopReason
from junhong_cmp.cards.store import (
    count_cards,
    delete_card,
    find_by_iccids,
    insert_cards,
    load_cards,
    set_polling_enabled,
)
from junhong_cmp.db.pool import Pool

SHORT = "8986001234567890123"


async def insert(pool: Pool, *iccids: str, code: str = "cmcc-1") -> list[str]:
    account = await add_account(pool, code)
    async with pool.acquire() as conn, conn.transaction():
        cards = await insert_cards(conn, account.id, [NewCard(iccid=iccid) for iccid in iccids])
    return [card.iccid for card in cards]


async def test_a_new_card_has_its_fields_and_knows_nothing_yet(pool: Pool) -> None:
    account = await add_account(pool)
    new = NewCard(
        iccid="898604B7192270274525",
        msisdn="14700000001",
        imsi="460001234567890",
        imei="860000000000001",
        batch_no="B-1",
        category="物联网",
        plan="30M",
        real_name_required=True,
    )
    async with pool.acquire() as conn, conn.transaction():
        (card,) = await insert_cards(conn, account.id, [new])
    for field in NewCard._fields:
        assert getattr(card, field) == getattr(new, field)
    assert card.iccid19 == new.iccid19 == "898604B719227027452"
    assert card.account_id == account.id
    assert (card.status, card.stop_reason) == (CardStatus.UNKNOWN, StopReason.NONE)
    assert card.real_name_status is RealNameStatus.UNKNOWN
    assert card.polling_enabled
    assert [card.progress(topic) for topic in PollTopic] == [PollProgress()] * 3
    assert await reload(pool, card) == card


async def test_real_names_nobody_asks_for_are_not_required(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    assert card.real_name_status is RealNameStatus.NOT_REQUIRED


async def test_cards_come_back_in_the_order_given(pool: Pool) -> None:
    iccids = [f"{89860000000000000000 + number}" for number in (7, 3, 9, 1)]
    assert await insert(pool, *iccids) == iccids


async def test_only_what_was_missing_is_inserted(pool: Pool) -> None:
    assert await insert(pool, SHORT + "1", SHORT + "2") == [SHORT + "1", SHORT + "2"]
    assert await insert(pool, SHORT + "2", SHORT + "3", code="other") == [SHORT + "3"]
    assert await insert(pool) == []


async def test_the_other_form_of_a_number_is_the_same_card(pool: Pool) -> None:
    assert await insert(pool, SHORT + "1") == [SHORT + "1"]
    assert await insert(pool, SHORT) == []
    assert await insert(pool, "9" + SHORT[1:], "9" + SHORT[1:] + "5") == ["9" + SHORT[1:]]
    assert await insert(pool, "9" + SHORT[1:] + "6") == []


@pytest.mark.parametrize("known", ["", "1", "2"])
async def test_cards_given_at_once_become_what_they_become_one_by_one(pool: Pool, known: str) -> None:
    """Any three forms of one number, met with one of another account's; ``known`` is its last character."""
    account, other = await add_account(pool), await add_account(pool, "other")
    for at, forms in enumerate(product(("", "1", "2", "3"), repeat=3)):
        one, all_at_once = (f"{89860000000000000 + 2 * at + way}00" for way in range(2))
        async with pool.acquire() as conn, conn.transaction():
            for short in (one, all_at_once):
                assert await insert_cards(conn, other.id, [NewCard(iccid=short + known)])
            expected = [
                card.iccid.removeprefix(one)
                for form in forms
                for card in await insert_cards(conn, account.id, [NewCard(iccid=one + form)])
            ]
            made = await insert_cards(conn, account.id, [NewCard(iccid=all_at_once + form) for form in forms])
        assert [card.iccid.removeprefix(all_at_once) for card in made] == expected, forms


async def test_two_imports_at_once_never_insert_both_forms(pool: Pool) -> None:
    await add_account(pool)
    numbers = [f"898600{number:013d}" for number in range(50)]
    inserted = await asyncio.gather(
        insert(pool, *numbers), insert(pool, *(number + "4" for number in reversed(numbers)))
    )
    assert sum(len(each) for each in inserted) == len(numbers)
    assert await count_cards(pool) == len(numbers)


async def test_finding_by_either_form(pool: Pool) -> None:
    await insert(pool, SHORT + "1", SHORT + "2", "9" + SHORT[1:])
    async with pool.acquire() as conn:
        asked = [SHORT, SHORT + "2", SHORT + "3", "9" + SHORT[1:] + "7", "8" * 19]
        found = await find_by_iccids(conn, asked)
    assert {asked: card.iccid for asked, card in found.items()} == {
        SHORT: SHORT + "1",
        SHORT + "2": SHORT + "2",
        "9" + SHORT[1:] + "7": "9" + SHORT[1:],
    }


async def test_a_deleted_card_is_gone_and_its_number_free(pool: Pool) -> None:
    account = await add_account(pool)
    (card,) = await add_cards(pool, account, 1)
    async with pool.acquire() as conn:
        deleted = await delete_card(conn, card.id)
        assert deleted is not None
        assert deleted.version == card.version + 1
        assert await delete_card(conn, card.id) is None
        assert await set_polling_enabled(conn, card.id, enabled=True) is None
        assert await load_cards(conn, [card.id]) == {}
        assert await find_by_iccids(conn, [card.iccid]) == {}
    assert await count_cards(pool) == 0
    assert await insert(pool, card.iccid) == [card.iccid]


async def test_counting_by_account(pool: Pool) -> None:
    account = await add_account(pool)
    await add_cards(pool, account, 3)
    assert await insert(pool, SHORT, code="other") == [SHORT]
    assert await count_cards(pool) == 4
    assert await count_cards(pool, account.id) == 3


@whatever_is_known
async def test_cards_are_found_and_inserted_without_reading_others(
    postgres_dsn: str, statistics: Statistics
) -> None:
    known = [f"{89860000000000000000 + number * 10}" for number in range(5000, 5100)]
    new = [f"{89870000000000000000 + number * 10}" for number in range(50)]
    async with watched_crowd(postgres_dsn, statistics) as watch, watch.pool.acquire() as conn:
        assert len(await load_cards(conn, range(5000, 5100))) == 100
        watch.assert_frugal(200)
        assert len(await find_by_iccids(conn, known)) == 100
        watch.assert_frugal(200)
        async with conn.transaction():
            rows = [NewCard(iccid=iccid) for iccid in known + new]
            assert len(await insert_cards(conn, CROWDED, rows)) == 50
        watch.assert_frugal(300)
