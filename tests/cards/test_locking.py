import asyncio

import asyncpg
from tests.cards.inventory import add_account, add_cards, hours
from tests.waiting import wait_until

from junhong_cmp.cards.locking import admit
from junhong_cmp.cards.model import Card, PollTopic
from junhong_cmp.cards.observations import FailureWrite, RecordOutcome
from junhong_cmp.db.pool import Pool

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def observation(card: Card, at: float) -> FailureWrite:
    return FailureWrite(card_id=card.id, account_id=card.account_id, observed_at=hours(at))


async def test_rows_come_back_for_what_counts_and_refusals_for_the_rest(pool: Pool) -> None:
    first, second = await add_cards(pool, await add_account(pool), 2)
    writes = [observation(second, 1), observation(first, 2), observation(first, 1)]
    async with pool.acquire() as conn, conn.transaction():
        rows = await admit(conn, PollTopic.CARDDATA, writes)
    assert isinstance(rows[0], asyncpg.Record)
    assert isinstance(rows[1], asyncpg.Record)
    assert (rows[0]["id"], rows[1]["id"], rows[2]) == (second.id, first.id, RecordOutcome.SUPERSEDED)


async def test_of_equally_old_observations_the_last_counts(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    async with pool.acquire() as conn, conn.transaction():
        first, last = await admit(conn, PollTopic.CARDDATA, [observation(card, 1), observation(card, 1)])
    assert first is RecordOutcome.SUPERSEDED
    assert isinstance(last, asyncpg.Record)


async def test_a_second_batch_waits_for_the_first_and_sees_what_it_wrote(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)

    async def second() -> object:
        async with pool.acquire() as conn, conn.transaction():
            (row,) = await admit(conn, PollTopic.CARDDATA, [observation(card, 1)])
            return row

    async def somebody_waits() -> bool:
        return bool(await pool.fetchval(WAITING))

    async with pool.acquire() as conn:
        async with conn.transaction():
            await admit(conn, PollTopic.CARDDATA, [observation(card, 2)])
            task = asyncio.create_task(second())
            await wait_until(somebody_waits, description="the second batch waits for the lock")
            await conn.execute("UPDATE iot_card SET carddata_succeeded_at = $1", hours(2))
        assert await task is RecordOutcome.SUPERSEDED


async def test_rows_that_refer_to_a_card_do_not_wait_for_its_poll(pool: Pool) -> None:
    (card,) = await add_cards(pool, await add_account(pool), 1)
    async with pool.acquire() as conn, conn.transaction():
        await admit(conn, PollTopic.CARDDATA, [observation(card, 1)])
        await asyncio.wait_for(
            pool.execute(
                "INSERT INTO card_operation (card_id, kind, reason, request_id)"
                " VALUES ($1, 'stop', 'manual', 'r1')",
                card.id,
            ),
            timeout=5,
        )
