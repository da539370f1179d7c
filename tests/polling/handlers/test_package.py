"""Usage against threshold, plan and pool: told and acted upon once, without another call to the carrier."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from structlog.testing import capture_logs
from tests.polling.handlers.alert_rules import add_alert_rule, events
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts, card_task

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.clock import SystemClock
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.package import PackageHandler
from junhong_cmp.polling.package_watch import PackageWatch
from junhong_cmp.polling.tasks import TaskType


@pytest.fixture
def rules(plant: Plant) -> RuleParts:
    return RuleParts(plant, SystemClock())


@pytest.fixture
async def protected(plant: Plant) -> CarrierAccount:
    account = await add_account(plant.pool, "protected", protect_enabled=True)
    await plant.config.refresh()
    await record_plan(plant.pool, account.id, "5GB", 5000)
    return account


class Reader:
    """Polls cards the way a worker does; every call asks for usage once."""

    def __init__(self, plant: Plant, rules: RuleParts) -> None:
        self.plant = plant
        self.now_s = 0.0
        watch = PackageWatch(plant.pool, rules.evaluator, monotonic=lambda: self.now_s)
        self.handler = CarddataHandler(plant.base, watch)

    async def read(self, card: Card, used_kb: int) -> None:
        self.plant.gateway.used_kb[card.id] = used_kb
        self.now_s += 120
        await self.handler.process_task(await self.plant.task_for(card))


async def told(plant: Plant) -> list[tuple[int, str]]:
    return [(rule, level) for rule, _, _, level in await events(plant.pool)]


async def test_a_reading_that_crosses_a_line_is_told_at_once_and_once(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    near = await add_alert_rule(plant.pool, "plan_usage", 0.8)
    full = await add_alert_rule(plant.pool, "plan_usage", 1.0, level="critical")
    (card,) = await add_cards(plant.pool, protected, 1, plan="5GB")
    reader = Reader(plant, rules)
    seen = []
    for used_kb in (3000, 3999, 4000, 4500, 5000, 5001):
        await reader.read(card, used_kb)
        seen.append((await told(plant), await rules.handed_over()))
    assert seen == [
        ([], []),
        ([], []),
        ([(near, "warning")], []),
        ([(near, "warning")], []),
        ([(near, "warning"), (full, "critical")], [card.id]),
        ([(near, "warning"), (full, "critical")], []),
    ]
    assert [operation for operation, _ in plant.gateway.calls] == ["usage"] * 6


async def test_a_pool_is_told_of_once_whichever_card_is_read(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    rule = await add_alert_rule(plant.pool, "pool_usage", 0.5)
    cards = await add_cards(plant.pool, protected, 3)
    pool_id = await plant.pool.fetchval(
        "INSERT INTO data_pool (account_id, name, capacity_kb, updated_at)"
        " VALUES ($1, '池', 1000, now() - interval '1 day') RETURNING id",
        protected.id,
    )
    await plant.pool.execute("UPDATE iot_card SET pool_id = $1", pool_id)
    reader = Reader(plant, rules)
    for used_kb in (100, 400):
        for card in cards:
            await reader.read(card, used_kb)
            await plant.pool.execute("UPDATE data_pool SET updated_at = now() - interval '1 day'")
    assert await told(plant) == [(rule, "warning")]
    row = await plant.pool.fetchrow("SELECT pool_id, message FROM alert_event")
    assert row is not None
    assert row["pool_id"] == pool_id
    assert "流量池 池 本周期已用" in row["message"]
    assert await rules.handed_over() == [cards[2].id], (
        "1200 of 1000: this card's task begins, sweeps do the rest"
    )


async def test_a_threshold_of_its_own_and_a_batch_of_cards(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    rule = await add_alert_rule(plant.pool, "threshold", 0.5, account_id=protected.id)
    cards = await add_cards(plant.pool, protected, 3)
    await plant.pool.execute(
        "UPDATE iot_card SET threshold_kb = 10 * id, cycle_used_kb = 5 * id, cycle = $1", _cycle()
    )
    await rules.evaluator.evaluate([card.id for card in cards])
    assert [event[:2] for event in await events(plant.pool)] == [(rule, card.id) for card in cards]


async def test_anybody_may_ask_for_it(plant: Plant, rules: RuleParts, protected: CarrierAccount) -> None:
    rule = await add_alert_rule(plant.pool, "plan_usage", 0.8)
    (card,) = await add_cards(plant.pool, protected, 1, plan="5GB")
    await plant.pool.execute("UPDATE iot_card SET cycle = $1, cycle_used_kb = 4500", _cycle())
    handler = PackageHandler(rules.evaluator)
    for _ in range(2):
        await handler.process_task(card_task(TaskType.POLLING_PACKAGE, card))
    assert await told(plant) == [(rule, "warning")]
    await plant.pool.execute("UPDATE iot_card SET cycle_used_kb = 5000, status = 'active'")
    await handler.process_task(card_task(TaskType.POLLING_PACKAGE, card))
    assert await rules.handed_over() == [card.id]
    assert plant.gateway.calls == []


async def test_a_bad_payload_ends_and_an_outage_waits(
    plant: Plant, rules: RuleParts, account: CarrierAccount, postgres_server: EmbeddedPostgres
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    handler = PackageHandler(rules.evaluator)
    task = card_task(TaskType.POLLING_PACKAGE, card)
    with pytest.raises(SkipRetry):
        await handler.process_task(
            ProcessingTask(id="t", type=task.type, deadline=task.deadline, payload=b"[]")
        )
    await postgres_server.stop()
    with pytest.raises(PutBack, match="依赖暂不可用"):
        await handler.process_task(task)
    await postgres_server.start()


async def test_a_failing_evaluation_does_not_fail_the_poll(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, protected, 1, plan="5GB")

    class Failing:
        async def evaluate(self, _: Any) -> None:
            raise ConnectionResetError

    reader = Reader(plant, rules)
    failing: Any = Failing()
    reader.handler = CarddataHandler(plant.base, PackageWatch(plant.pool, failing))
    with capture_logs() as logs:
        await reader.read(card, 9000)
    assert "套餐判定未能完成，等待定时检查" in [entry["event"] for entry in logs]
    assert (await plant.totals())["done"] == 1


def _cycle() -> str:
    return billing_cycle(SystemClock().now(), 1, ZoneInfo("Asia/Shanghai"))
