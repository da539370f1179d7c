"""Alert rules against real cards: once per card, rule, cycle and level."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.polling.handlers.alert_rules import add_alert_rule, events
from tests.polling.handlers.firing import fire
from tests.polling.handlers.limited_cards import CYCLE
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.polling.alert_sweep import AlertSweep
from junhong_cmp.polling.handlers.alert_check import AlertCheckHandler
from junhong_cmp.polling.handlers.expiry_check import ExpiryCheckHandler
from junhong_cmp.polling.protect_sweep import ProtectSweep


@pytest.fixture
def sweep(plant: Plant, clock: FakeClock) -> AlertSweep:
    return AlertSweep(plant.pool, plant.config, clock, page=2)


@pytest.fixture
def protect(plant: Plant, clock: FakeClock) -> ProtectSweep:
    return RuleParts(plant, clock).sweep


async def test_a_threshold_is_told_once_a_cycle_and_level(
    plant: Plant, account: CarrierAccount, sweep: AlertSweep, protect: ProtectSweep, clock: FakeClock
) -> None:
    warning = await add_alert_rule(plant.pool, "threshold", 0.8)
    critical = await add_alert_rule(plant.pool, "threshold", 1.0, level="critical")
    cards = await add_cards(plant.pool, account, 5)
    await plant.pool.execute(
        "UPDATE iot_card SET threshold_kb = 1000, cycle = $1, cycle_used_kb = 200 * (id - $2 + 1)",
        CYCLE,
        cards[0].id,
    )
    handler = AlertCheckHandler(sweep, protect)
    with capture_logs() as logs:
        await fire(handler)
        await fire(handler)
    assert await events(plant.pool) == [
        (warning, cards[3].id, CYCLE, "warning"),
        (warning, cards[4].id, CYCLE, "warning"),
        (critical, cards[4].id, CYCLE, "critical"),
    ]
    assert [(entry["event"], entry["cards"]) for entry in logs] == [("产生告警", 2), ("产生告警", 1)]
    clock.advance(timedelta(days=40))  # the readings are of an earlier cycle now
    await fire(handler)
    assert len(await events(plant.pool)) == 3
    await plant.pool.execute("UPDATE iot_card SET cycle = '2026-04-01', cycle_used_kb = 900")
    await fire(handler)
    assert [event[2] for event in await events(plant.pool)][3:] == ["2026-04-01"] * 5


async def test_stale_data_is_told_of_polled_cards_only(
    plant: Plant, account: CarrierAccount, sweep: AlertSweep, protect: ProtectSweep, clock: FakeClock
) -> None:
    rule = await add_alert_rule(plant.pool, "stale_data", 24)
    stale, _fresh, never, off, unpolled = await add_cards(plant.pool, account, 5)
    await plant.pool.execute("UPDATE iot_card SET carddata_succeeded_at = $1", clock.now())
    await plant.pool.execute(
        "UPDATE iot_card SET carddata_succeeded_at = $1 WHERE id = ANY ($2::bigint[])",
        clock.now() - timedelta(days=2),
        [stale.id, off.id, unpolled.id],
    )
    await plant.pool.execute(
        "UPDATE iot_card SET carddata_succeeded_at = NULL, created_at = $2 WHERE id = $1",
        never.id,
        clock.now() - timedelta(days=2),
    )
    await plant.pool.execute("UPDATE iot_card SET polling_enabled = false WHERE id = $1", off.id)
    await plant.pool.execute("UPDATE iot_card SET category = 'x' WHERE id = $1", unpolled.id)
    await plant.pool.execute(
        "INSERT INTO polling_config (name, priority, category, intervals) VALUES ('不查', 1, 'x', $1)",
        {"carddata": {"enabled": False}},
    )
    await plant.config.refresh()
    await fire(AlertCheckHandler(sweep, protect))
    assert {event[:2] for event in await events(plant.pool)} == {(rule, stale.id), (rule, never.id)}


async def test_rules_keep_to_their_account_category_and_switch(
    plant: Plant, account: CarrierAccount, sweep: AlertSweep, protect: ProtectSweep
) -> None:
    other = await add_account(plant.pool, "other")
    (mine,) = await add_cards(plant.pool, account, 1, category="vip")
    await add_cards(plant.pool, account, 1, first=5)
    await add_cards(plant.pool, other, 1, first=9, category="vip")
    await plant.pool.execute("UPDATE iot_card SET cardstatus_fail_count = 9")
    await add_alert_rule(plant.pool, "api_failure", 3, account_id=account.id, category="vip")
    await add_alert_rule(plant.pool, "api_failure", 1, enabled=False)
    await fire(AlertCheckHandler(sweep, protect))
    assert [event[1] for event in await events(plant.pool)] == [mine.id]


async def test_expiry_is_the_other_entrys(
    plant: Plant, account: CarrierAccount, sweep: AlertSweep, protect: ProtectSweep, clock: FakeClock
) -> None:
    await add_alert_rule(plant.pool, "expiry", 7)
    soon, past, later = await add_cards(plant.pool, account, 3)
    for card, days in ((soon, 3), (past, -3), (later, 30)):
        await plant.pool.execute(
            "UPDATE iot_card SET expires_at = $2 WHERE id = $1", card.id, clock.now() + timedelta(days=days)
        )
    await fire(AlertCheckHandler(sweep, protect))
    assert await events(plant.pool) == []
    await fire(ExpiryCheckHandler(sweep, protect), draining=True)
    assert await events(plant.pool) == []
    await fire(ExpiryCheckHandler(sweep, protect))
    await fire(ExpiryCheckHandler(sweep, protect))
    assert [event[1] for event in await events(plant.pool)] == [soon.id, past.id]


async def test_while_postgresql_is_away_the_task_is_put_back(
    plant: Plant, sweep: AlertSweep, protect: ProtectSweep, postgres_server: EmbeddedPostgres
) -> None:
    await postgres_server.stop()
    with pytest.raises(PutBack, match="数据库不可用"):
        await fire(AlertCheckHandler(sweep, protect))
    await postgres_server.start()


async def test_plans_and_pools_are_told_of_where_no_reading_has(
    plant: Plant, account: CarrierAccount, sweep: AlertSweep, protect: ProtectSweep
) -> None:
    plan = await add_alert_rule(plant.pool, "plan_usage", 0.8)
    shared = await add_alert_rule(plant.pool, "pool_usage", 0.9, level="critical")
    cards = await add_cards(plant.pool, account, 4)
    await record_plan(plant.pool, account.id, "S", 1000)
    pool_id = await plant.pool.fetchval(
        "INSERT INTO data_pool (account_id, name, capacity_kb) VALUES ($1, '池', 2000) RETURNING id",
        account.id,
    )
    await plant.pool.execute(
        "UPDATE iot_card SET plan = 'S', pool_id = $3, cycle = $1, cycle_used_kb = 300 * (id - $2)",
        CYCLE,
        cards[0].id,
        pool_id,
    )
    for _ in range(2):
        await fire(AlertCheckHandler(sweep, protect))
    assert await events(plant.pool) == [
        (plan, cards[3].id, CYCLE, "warning"),  # 900 of 1000
        (shared, cards[3].id, CYCLE, "critical"),  # 1800 of 2000; the heaviest user stands for all
    ]


async def test_a_card_that_changed_pools_keeps_no_pool_from_its_alert(
    plant: Plant, account: CarrierAccount, sweep: AlertSweep, protect: ProtectSweep
) -> None:
    shared = await add_alert_rule(plant.pool, "pool_usage", 0.9)
    heavy, light = await add_cards(plant.pool, account, 2)
    first, second = [
        await plant.pool.fetchval(
            "INSERT INTO data_pool (account_id, name, capacity_kb) VALUES ($1, $2, 1000) RETURNING id",
            account.id,
            name,
        )
        for name in ("甲", "乙")
    ]
    await plant.pool.execute(
        "UPDATE iot_card SET cycle = $1, pool_id = $2,"
        " cycle_used_kb = CASE WHEN id = $3 THEN 2000 ELSE 10 END",
        CYCLE,
        first,
        heavy.id,
    )
    await fire(AlertCheckHandler(sweep, protect))
    await plant.pool.execute("UPDATE iot_card SET pool_id = $1", second)
    await plant.pool.execute("UPDATE data_pool SET updated_at = now() - interval '1 hour'")
    for _ in range(2):
        await fire(AlertCheckHandler(sweep, protect))
    told = await plant.pool.fetch("SELECT rule_id, card_id, pool_id FROM alert_event ORDER BY pool_id")
    assert [tuple(row) for row in told] == [(shared, heavy.id, first), (shared, light.id, second)]
