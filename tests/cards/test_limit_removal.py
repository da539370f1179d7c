"""A plan or pool goes only when no card has it."""

import asyncio

from tests.cards.inventory import add_account, add_cards, reload
from tests.waiting import wait_until

from junhong_cmp.cards.limit_removal import Removal, remove_plan, remove_pool
from junhong_cmp.cards.limit_store import list_plan_use, record_plan
from junhong_cmp.cards.pool_store import list_pool_use, put_cards, record_pool, take_cards
from junhong_cmp.cards.store import delete_card
from junhong_cmp.db.pool import Pool


async def test_a_plan_that_cards_name_stays(pool: Pool) -> None:
    account, other = await add_account(pool), await add_account(pool, "other")
    first, second = await add_cards(pool, account, 2)
    for each in (account, other):
        await record_plan(pool, each.id, "5GB", 5)
    await pool.execute("UPDATE iot_card SET plan = '5GB'")
    async with pool.acquire() as conn:
        assert await remove_plan(conn, account.id, "5GB") == Removal(found=True, cards=2)
        assert await remove_plan(conn, account.id, "6GB") == Removal(found=False, cards=0)
        await delete_card(conn, first.id)
        await conn.execute("UPDATE iot_card SET plan = NULL WHERE id = $1", second.id)
        assert await remove_plan(conn, account.id, "5GB") == Removal(found=True, cards=0)
    assert [plan.account for plan in await list_plan_use(pool)] == ["other"]


async def test_a_pool_with_cards_stays(pool: Pool) -> None:
    account = await add_account(pool)
    (card,) = await add_cards(pool, account, 1)
    await record_pool(pool, account.id, "池", 1000, None)
    (made,) = await list_pool_use(pool, account.id)
    async with pool.acquire() as conn:
        await put_cards(conn, account.id, made.id, [card.id])
        assert await remove_pool(conn, account.id, "池") == Removal(found=True, cards=1)
        await take_cards(conn, made.id, [card.id])
        assert await remove_pool(conn, account.id, "池") == Removal(found=True, cards=0)
        assert await remove_pool(conn, account.id, "池") == Removal(found=False, cards=0)


async def test_a_card_put_in_meanwhile_keeps_its_pool(pool: Pool) -> None:
    account = await add_account(pool)
    (card,) = await add_cards(pool, account, 1)
    await record_pool(pool, account.id, "池", 1000, None)
    (made,) = await list_pool_use(pool, account.id)

    async def remove() -> Removal:
        async with pool.acquire() as conn:
            return await remove_pool(conn, account.id, "池")

    async def is_waiting() -> bool:
        return bool(await pool.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

    async with pool.acquire() as conn, conn.transaction():
        await put_cards(conn, account.id, made.id, [card.id])
        removing = asyncio.create_task(remove())
        await wait_until(is_waiting, description="the removal waits for the card")
    assert await removing == Removal(found=True, cards=1)
    assert (await reload(pool, card)).pool_id == made.id
