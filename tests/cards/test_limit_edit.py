"""Thresholds and plans of cards, changed by an operator."""

from tests.cards.inventory import add_account, add_cards, reload

from junhong_cmp.cards.limit_edit import LimitEdit, record_limits
from junhong_cmp.cards.store import delete_card
from junhong_cmp.db.pool import Pool


async def test_only_what_an_edit_names_is_changed_and_only_where_it_differs(pool: Pool) -> None:
    cards = await add_cards(pool, await add_account(pool), 3)
    ids = [card.id for card in cards]
    edits = (LimitEdit(threshold_kb=10), LimitEdit(plan="5GB"), LimitEdit(threshold_kb=None))
    seen = []
    async with pool.acquire() as conn:
        for edit in edits:
            assert await record_limits(conn, ids[:2], edit) == ids[:2]
            assert await record_limits(conn, ids[:2], edit) == []
            now = await reload(pool, cards[0])
            seen.append((now.threshold_kb, now.plan, now.version))
    assert seen == [(10, None, 2), (10, "5GB", 3), (None, "5GB", 4)]
    assert await reload(pool, cards[2]) == cards[2]


async def test_an_edit_says_beforehand_what_it_makes_of_a_card(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    for edit in (LimitEdit(), LimitEdit(threshold_kb=7, plan="S"), LimitEdit(None, None)):
        foretold = edit.applied_to(await reload(pool, card))
        async with pool.acquire() as conn:
            await record_limits(conn, [card.id], edit)
        assert await reload(pool, card) == foretold._replace(version=(await reload(pool, card)).version)


async def test_a_deleted_card_is_left_alone(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    async with pool.acquire() as conn:
        await delete_card(conn, card.id)
        assert await record_limits(conn, [card.id], LimitEdit(threshold_kb=1)) == []
