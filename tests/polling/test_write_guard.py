import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_cards
from tests.waiting import FakeClock

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import load_cards
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.write_guard import WriteGuard

REFUSED = asyncpg.exceptions.ReadOnlySQLTransactionError("read-only")


@pytest.fixture
async def guard(pool: Pool, clock: FakeClock) -> WriteGuard:
    return WriteGuard(pool, clock=clock.monotonic)


async def test_nothing_is_asked_of_the_database_while_nothing_was_refused(guard: WriteGuard) -> None:
    assert not guard.is_closed
    guard.note(ValueError("of one card alone"))
    assert not guard.is_closed


async def test_a_refused_write_is_remembered_until_one_succeeds(guard: WriteGuard, clock: FakeClock) -> None:
    with capture_logs() as logs:
        guard.note(REFUSED)
        guard.note(REFUSED)
        assert guard.is_closed
        assert not await guard.try_write()
        clock.advance(1.1)
        assert await guard.try_write()
        assert not guard.is_closed
    assert [entry["event"] for entry in logs] == [
        "数据库拒绝写入，暂停调用运营商",
        "数据库恢复可写，恢复调用运营商",
    ]


async def test_d3_a_read_only_database_is_found_out_once_and_then_no_carrier_is_asked(
    plant: Plant, account: CarrierAccount, postgres_dsn: str, clock: FakeClock
) -> None:
    cards = await add_cards(plant.pool, account, 6)
    read_only = await open_pool(postgres_dsn, max_size=2)
    name = await read_only.fetchval("SELECT current_database()")
    await read_only.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await read_only.close()
    pool = await open_pool(postgres_dsn, max_size=2)
    worker = Plant(pool, postgres_dsn, plant.redis)
    await worker.config.refresh()
    handler = CarddataHandler(worker.base)
    await handler.process_task(await worker.task_for(cards[0]))
    assert worker.gateway.calls == [("usage", cards[0].id)]
    for card in cards[1:3]:
        await handler.process_task(await worker.task_for(card))
    await handler.process_task(await worker.batch_task_for(cards[3:]))
    assert worker.gateway.calls == [("usage", cards[0].id)], "the answer could not be kept: not asked"
    for card in cards:
        assert 0 < (await worker.score(card) or 0) - await worker.queue.now_ms() <= 10_000
    assert {
        card.carddata.fail_count for card in (await load_cards(pool, [c.id for c in cards])).values()
    } == {0}
    async with plant.pool.acquire() as conn, conn.transaction():
        await conn.execute("SET TRANSACTION READ WRITE")
        await conn.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    await worker.close()
    await pool.close()
