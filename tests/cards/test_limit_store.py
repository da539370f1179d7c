"""Plans and pools of cards."""

from datetime import timedelta

from tests.cards.inventory import add_account, add_cards
from tests.crowd import Statistics, watched_crowd, whatever_is_known

from junhong_cmp.cards.limit_store import (
    PlanUse,
    count_pools,
    list_plan_use,
    load_limits,
    load_plan_quotas,
    record_plan,
)
from junhong_cmp.cards.limits import NO_LIMITS
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.usage import CycleId
from junhong_cmp.db.pool import Pool

CYCLE = CycleId("2026-03-01")


async def add_pool(pool: Pool, account: CarrierAccount, cards: list[Card], capacity_kb: int = 1000) -> int:
    pool_id: int = await pool.fetchval(
        "INSERT INTO data_pool (account_id, name, capacity_kb) VALUES ($1, '池', $2) RETURNING id",
        account.id,
        capacity_kb,
    )
    await pool.execute(
        "UPDATE iot_card SET pool_id = $1, cycle = $3, cycle_used_kb = 100 WHERE id = ANY ($2::bigint[])",
        pool_id,
        [card.id for card in cards],
        CYCLE,
    )
    return pool_id


async def count(pool: Pool, pool_id: int, age: timedelta = timedelta(minutes=1)) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await count_pools(conn, [pool_id], CYCLE, age)


async def test_a_card_has_the_plan_of_its_own_account(pool: Pool) -> None:
    account, other = await add_account(pool), await add_account(pool, "other")
    named, plain = await add_cards(pool, account, 2)
    await pool.execute("UPDATE iot_card SET plan = '5GB' WHERE id = $1", named.id)
    await record_plan(pool, other.id, "5GB", 1)
    assert (await load_limits(pool, [named.id]))[named.id] == NO_LIMITS
    await record_plan(pool, account.id, "5GB", 4)
    await record_plan(pool, account.id, "5GB", 5)
    limits = await load_limits(pool, [named.id, plain.id])
    assert (limits[named.id].plan_kb, limits[plain.id]) == (5, NO_LIMITS)
    assert await load_plan_quotas(pool) == {(account.id, "5GB"): 5, (other.id, "5GB"): 1}


async def test_a_pool_is_added_up_once_a_while(pool: Pool) -> None:
    account = await add_account(pool)
    cards = await add_cards(pool, account, 3)
    pool_id = await add_pool(pool, account, cards[:2])
    await count(pool, pool_id)
    state = (await load_limits(pool, [cards[0].id]))[cards[0].id].pool
    assert state is not None
    assert (state.cycle, state.used_kb) == (CYCLE, 200)
    await pool.execute("UPDATE iot_card SET cycle_used_kb = 300 WHERE pool_id IS NOT NULL")
    await count(pool, pool_id)
    assert await pool.fetchval("SELECT used_kb FROM data_pool") == 200
    await count(pool, pool_id, timedelta(0))
    assert await pool.fetchval("SELECT used_kb FROM data_pool") == 600


async def test_of_two_at_once_one_counts_and_the_other_does_not_wait(pool: Pool) -> None:
    account = await add_account(pool)
    pool_id = await add_pool(pool, account, await add_cards(pool, account, 1))
    async with pool.acquire() as conn, conn.transaction():
        await count_pools(conn, [pool_id], CYCLE)
        await count(pool, pool_id)
    assert await pool.fetchval("SELECT used_kb FROM data_pool") == 100


async def test_plans_are_listed_with_their_cards_and_so_are_those_only_cards_name(pool: Pool) -> None:
    account, other = await add_account(pool), await add_account(pool, "other")
    first, second, gone, none = await add_cards(pool, account, 4)
    for card, plan in ((first, "S"), (second, "M"), (gone, "M"), (none, "")):
        await pool.execute("UPDATE iot_card SET plan = $2 WHERE id = $1", card.id, plan)
    await pool.execute("UPDATE iot_card SET deleted_at = now() WHERE id = $1", gone.id)
    await record_plan(pool, account.id, "S", 10)
    await record_plan(pool, account.id, "L", 30)
    await record_plan(pool, other.id, "M", 20)
    mine = [
        PlanUse(account.code, "L", 30, 0),
        PlanUse(account.code, "M", None, 1),
        PlanUse(account.code, "S", 10, 1),
    ]
    assert await list_plan_use(pool, account.id) == mine
    assert await list_plan_use(pool) == [*mine, PlanUse("other", "M", 20, 0)]


@whatever_is_known
async def test_no_cards_are_read_but_those_asked_about_and_those_of_the_pool(
    postgres_dsn: str, statistics: Statistics
) -> None:
    async with watched_crowd(postgres_dsn, statistics) as watch, watch.pool.acquire() as conn:
        assert len(await load_limits(conn, range(5000, 5100))) == 100
        watch.assert_frugal(600)  # each card with ten pools
        async with conn.transaction():
            await count_pools(conn, [1], CYCLE, timedelta(0))
        watch.assert_frugal(1200)
        assert await conn.fetchval("SELECT used_kb FROM data_pool WHERE id = 1") == 1000 * 1100
