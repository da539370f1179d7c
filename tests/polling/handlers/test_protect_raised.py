"""Whoever raises a limit gets the cards back that were stopped for it, until they reach the new one."""

import asyncio
from datetime import timedelta

import pytest
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import Card, CardStatus, CarrierAccount, StopReason
from junhong_cmp.polling.card_payload import Order
from junhong_cmp.polling.operation_rules import OperationKind
from junhong_cmp.polling.protect_sweep import SweepCause

CYCLE = "2026-03-01"  # of the fake clock's first of March, in Shanghai


@pytest.fixture
def rules(plant: Plant, clock: FakeClock) -> RuleParts:
    return RuleParts(plant, clock)


@pytest.fixture
async def protected(plant: Plant) -> CarrierAccount:
    account = await add_account(plant.pool, "protected", protect_enabled=True)
    await record_plan(plant.pool, account.id, "S", 1000)
    await plant.config.refresh()
    return account


async def stopped(plant: Plant, rules: RuleParts, account: CarrierAccount, count: int = 1) -> list[Card]:
    """Cards that the rules have stopped at their plan, and that may be changed again."""
    cards = await add_cards(plant.pool, account, count, first=100)
    await plant.pool.execute(
        "UPDATE iot_card SET status = 'active', plan = 'S', cycle = $1, cycle_used_kb = 1000", CYCLE
    )
    for card in cards:
        await rules.run_protect(card)
    assert isinstance(rules.clock, FakeClock)
    rules.clock.advance(account.operation_min_gap)
    return cards


async def sweep(rules: RuleParts, cause: SweepCause) -> list[int]:
    await rules.sweep.sweep(cause, draining=asyncio.Event())
    return await rules.handed_over()


async def test_a_raised_plan_brings_back_what_was_stopped_for_it(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await stopped(plant, rules, protected)
    assert await sweep(rules, SweepCause.RAISED) == []
    await record_plan(plant.pool, protected.id, "S", 2000)
    assert await sweep(rules, SweepCause.RAISED) == [card.id]
    await rules.run_protect(card)
    after = await rules.reload(card)
    assert (after.status, after.stop_reason) == (CardStatus.ACTIVE, StopReason.NONE)
    for cause in SweepCause:
        assert await sweep(rules, cause) == []

    await plant.pool.execute("UPDATE iot_card SET cycle_used_kb = 2000")
    clock.advance(protected.operation_min_gap)
    assert await sweep(rules, SweepCause.USAGE) == [card.id]
    await rules.run_protect(card)
    assert await rules.operations() == [
        ("stop", "over_plan", "done"),
        ("resume", "limit_raised", "done"),
        ("stop", "over_plan", "done"),
    ]


async def test_whoever_has_the_usage_looked_at_anew_need_not_wait_for_a_sweep(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await stopped(plant, rules, protected)
    await rules.evaluator.evaluate([card.id])
    assert await rules.handed_over() == []
    await record_plan(plant.pool, protected.id, "S", 2000)
    await rules.evaluator.evaluate([card.id])
    assert await rules.handed_over() == [card.id]


async def test_another_limit_still_exceeded_keeps_it_stopped(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await stopped(plant, rules, protected)
    await record_plan(plant.pool, protected.id, "S", 2000)
    pool_id = await plant.pool.fetchval(
        "INSERT INTO data_pool (account_id, name, capacity_kb, cycle, used_kb)"
        " VALUES ($1, 'p', 1000, $2, 1000) RETURNING id",
        protected.id,
        CYCLE,
    )
    for change in ("threshold_kb = 900", f"threshold_kb = NULL, pool_id = {pool_id}"):
        await plant.pool.execute(f"UPDATE iot_card SET {change}")  # noqa: S608 - constants from above
        assert await sweep(rules, SweepCause.RAISED) == []
        await rules.run_protect(card)
    assert await rules.operations() == [("stop", "over_plan", "done")]


async def test_who_stopped_it_by_hand_decides(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    by_rules, by_hand = await stopped(plant, rules, protected, 2)
    await rules.run_protect(by_hand, Order(OperationKind.STOP, "by-hand"))
    await record_plan(plant.pool, protected.id, "S", 2000)
    assert await sweep(rules, SweepCause.RAISED) == [by_rules.id]
    await rules.run_protect(by_hand)
    assert (await rules.reload(by_hand)).stop_reason is StopReason.MANUAL


async def test_a_resume_that_waits_is_dropped_if_the_limit_is_lowered_again(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await stopped(plant, rules, protected)
    await record_plan(plant.pool, protected.id, "S", 2000)
    clock.advance(-timedelta(minutes=1))  # too soon after the stop: the operation is placed, and waits
    with pytest.raises(PutBack, match="间隔不足"):
        await rules.run_protect(card)
    await record_plan(plant.pool, protected.id, "S", 1000)
    clock.advance(timedelta(minutes=1))
    await rules.run_protect(card)
    assert await rules.operations() == [("stop", "over_plan", "done"), ("resume", "limit_raised", "failed")]
