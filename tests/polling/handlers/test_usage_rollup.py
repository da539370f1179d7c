"""Usage is held to agree with itself."""

from datetime import UTC, datetime, timedelta

from structlog.testing import capture_logs
from tests.polling.handlers.firing import fire
from tests.polling.handlers.readings import cycles, read
from tests.polling.plant import add_account, add_cards
from tests.waiting import FakeClock

from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.handlers.usage_rollup import UsageRollupHandler

NOW = datetime(2026, 3, 20, tzinfo=UTC)


async def test_honest_readings_agree_over_a_change_of_cycle_and_late_usage(pool: Pool) -> None:
    account = await add_account(pool, "a")
    cards = await add_cards(pool, account, 3)
    for day, used_kb in ((50, 500), (40, 900), (20, 1500), (18.5, 1700), (15, 30), (1, 400)):
        await read(pool, cards, used_kb, NOW - timedelta(days=day))
    with capture_logs() as logs:
        await fire(UsageRollupHandler(pool, page=2, clock=FakeClock(NOW)))
    assert [(entry["event"], entry["mended"], entry["uncovered"]) for entry in logs] == [
        ("用量汇总完成", 0, 0)
    ]


async def test_a_cycle_that_differs_from_its_card_is_mended(pool: Pool) -> None:
    account = await add_account(pool, "a")
    cards = await add_cards(pool, account, 3)
    await read(pool, cards, 500, NOW)
    await pool.execute("UPDATE card_usage_cycle SET used_kb = 3 WHERE card_id = $1", cards[0].id)
    await pool.execute("DELETE FROM card_usage_cycle WHERE card_id = $1", cards[1].id)
    handler = UsageRollupHandler(pool, page=2, clock=FakeClock(NOW))
    with capture_logs() as logs:
        await fire(handler)
        await fire(handler)
    assert [entry["mended"] for entry in logs] == [2, 0]
    assert all([await cycles(pool, card) == [("2026-03-01", 500, False)] for card in cards])


async def test_days_that_exceed_their_cycles_are_told(pool: Pool) -> None:
    account = await add_account(pool, "a")
    cards = await add_cards(pool, account, 2)
    await read(pool, cards, 100, NOW - timedelta(days=1))
    await read(pool, cards, 300, NOW)
    await pool.execute("UPDATE card_usage_daily SET used_kb = 9000 WHERE card_id = $1", cards[1].id)
    with capture_logs() as logs:
        await fire(UsageRollupHandler(pool, clock=FakeClock(NOW)))
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [(entry["event"], entry["card_ids"]) for entry in errors] == [
        ("每日用量之和超过周期用量", [cards[1].id])
    ]


async def test_pools_hold_what_their_cards_used_this_cycle(pool: Pool) -> None:
    account = await add_account(pool, "a")
    cards = await add_cards(pool, account, 3)
    pool_id = await pool.fetchval(
        "INSERT INTO data_pool (account_id, name, capacity_kb) VALUES ($1, 'p', 10000) RETURNING id",
        account.id,
    )
    await pool.execute("UPDATE iot_card SET pool_id = $1 WHERE id <> $2", pool_id, cards[2].id)
    await read(pool, cards, 500, NOW)
    await read(pool, [cards[1]], 700, NOW + timedelta(minutes=1))
    await fire(UsageRollupHandler(pool, clock=FakeClock(NOW)))
    row = await pool.fetchrow("SELECT cycle, used_kb FROM data_pool")
    assert row is not None
    assert (row["cycle"], row["used_kb"]) == ("2026-03-01", 1200)
    await fire(UsageRollupHandler(pool, clock=FakeClock(NOW + timedelta(days=30))))
    assert await pool.fetchval("SELECT used_kb FROM data_pool") == 0
