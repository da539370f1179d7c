"""Pools, and the cards in them."""

from tests.cards.inventory import add_account, add_cards, reload

from junhong_cmp.cards.pool_store import (
    PoolUse,
    list_members,
    list_pool_use,
    put_cards,
    record_pool,
    recount_pools,
    take_cards,
)
from junhong_cmp.cards.store import delete_card
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.pool import Pool

CYCLE = CycleId("2026-03-01")


async def make_pool(pool: Pool, account_id: int, name: str = "池") -> PoolUse:
    await record_pool(pool, account_id, name, 1000, None)
    (made,) = await list_pool_use(pool, account_id, name)
    return made


async def test_pools_are_listed_with_their_live_cards(pool: Pool) -> None:
    account, other = await add_account(pool), await add_account(pool, "a-other")
    cards = await add_cards(pool, account, 3)
    made, foreign = await make_pool(pool, account.id), await make_pool(pool, other.id)
    async with pool.acquire() as conn:
        assert await put_cards(conn, account.id, made.id, [card.id for card in cards]) == [None] * 3
        await delete_card(conn, cards[0].id)
    await record_pool(pool, account.id, "池", 2000, 1500)
    expected = PoolUse(made.id, "cmcc-1", "池", 2000, 1500, None, 0, 2)
    assert await list_pool_use(pool) == [foreign, expected]
    assert await list_pool_use(pool, account.id) == [expected]
    assert await list_pool_use(pool, account.id, "无") == []
    assert await list_members(pool, made.id) == [card.id for card in cards[1:]]


async def test_cards_move_between_pools_of_their_account_only(pool: Pool) -> None:
    account, other = await add_account(pool), await add_account(pool, "other")
    first, second = await add_cards(pool, account, 2)
    one, two, foreign = [
        await make_pool(pool, each.id, name)
        for each, name in ((account, "一"), (account, "二"), (other, "池"))
    ]
    async with pool.acquire() as conn:
        assert await put_cards(conn, account.id, one.id, [first.id]) == [None]
        assert await put_cards(conn, account.id, one.id, [first.id]) == []
        moved = await put_cards(conn, account.id, two.id, [first.id, second.id])
        assert moved is not None
        assert set(moved) == {one.id, None}
        assert await put_cards(conn, other.id, foreign.id, [first.id]) == []
        assert await put_cards(conn, account.id, foreign.id, [first.id]) is None
        assert await take_cards(conn, one.id, [first.id]) == 0
        assert await take_cards(conn, two.id, [first.id]) == 1
    assert (await reload(pool, first)).pool_id is None
    assert (await reload(pool, second)).pool_id == two.id


async def test_the_total_follows_the_cards_at_once(pool: Pool) -> None:
    account = await add_account(pool)
    cards = await add_cards(pool, account, 2)
    made = await make_pool(pool, account.id)
    await pool.execute("UPDATE iot_card SET cycle = $1, cycle_used_kb = 100", CYCLE)
    totals = []
    async with pool.acquire() as conn:
        for card in cards:
            await put_cards(conn, account.id, made.id, [card.id])
            await recount_pools(conn, [made.id], CYCLE)
            totals += [(each.cycle, each.used_kb) for each in await list_pool_use(conn)]
    assert totals == [(CYCLE, 100), (CYCLE, 200)]


async def test_another_capacity_does_not_pass_for_a_fresh_total(pool: Pool) -> None:
    account = await add_account(pool)
    await make_pool(pool, account.id)
    await pool.execute("UPDATE data_pool SET updated_at = now() - interval '1 hour'")
    await record_pool(pool, account.id, "池", 5, 4)
    assert await pool.fetchval("SELECT updated_at < now() - interval '59 minutes' FROM data_pool")
