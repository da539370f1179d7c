from tests.cards.inventory import add_account
from tests.query_plans import watched_pool

from junhong_cmp.cards.model import NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.db.kept_plans import kept_plans
from junhong_cmp.db.pool import Pool, open_pool

PLANS = """
    SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement ~ 'INTO iot_card [(]'
"""
FILL = """
    INSERT INTO iot_card (iccid, iccid19, account_id)
    SELECT iccid, left(iccid, 19), $1
    FROM generate_series(2, 5000) AS n, LATERAL (SELECT (89860000000000000000 + n * 10)::text AS iccid)
"""
MODES = "SELECT current_setting('plan_cache_mode'), current_setting('enable_seqscan')"


def news(first: int, count: int) -> list[NewCard]:
    return [NewCard(iccid=f"{89860000000000000000 + n * 10}") for n in range(first, first + count)]


async def test_the_settings_end_with_the_block(postgres_dsn: str) -> None:
    async with await open_pool(postgres_dsn, max_size=1) as pool, pool.acquire() as conn:
        async with conn.transaction():
            async with kept_plans(conn):
                assert tuple(await conn.fetchrow(MODES) or ()) == ("force_generic_plan", "off")
            assert tuple(await conn.fetchrow(MODES) or ()) == ("force_custom_plan", "on")
        assert tuple(await conn.fetchrow(MODES) or ()) == ("force_custom_plan", "on")


async def test_a_session_without_settings_of_ours_gets_its_own_back(postgres_dsn: str) -> None:
    async with await open_pool(postgres_dsn, max_size=1, pgbouncer=True) as pool, pool.acquire() as conn:
        async with conn.transaction(), kept_plans(conn):
            pass
        assert tuple(await conn.fetchrow(MODES) or ()) == ("auto", "on")


async def test_a_statement_run_again_is_not_planned_again(pool: Pool) -> None:
    account = await add_account(pool)
    async with pool.acquire() as conn, conn.transaction():
        await insert_cards(conn, account.id, news(0, 300))
        plans = await conn.fetch(PLANS)
    assert [tuple(row) for row in plans] == [(6, 0)]  # fifty rows a statement, all by the generic plan


async def test_a_plan_kept_from_an_empty_table_reads_no_more_when_the_table_is_full(
    postgres_dsn: str,
) -> None:
    async with watched_pool(postgres_dsn) as watch, watch.pool.acquire() as conn:
        account = await add_account(watch.pool)
        await conn.execute("ALTER TABLE iot_card SET (autovacuum_enabled = off)")
        for first in (0, 1, 5001):
            if first > 1:
                await conn.execute(FILL, account.id)
                watch.plans.clear()
            async with conn.transaction():
                assert len(await insert_cards(conn, account.id, news(first, 1))) == 1
        watch.assert_frugal(10)
