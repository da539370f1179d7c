"""A sweep of a large account: a slice a run, everything within an hour, pools and new plans at once."""

import asyncio
from datetime import timedelta

import pytest
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.polling.protect_sweep import SweepCause, count_candidates

PERIOD = timedelta(minutes=5)
CYCLE = "2026-03-01"


@pytest.fixture
def rules(plant: Plant, clock: FakeClock) -> RuleParts:
    return RuleParts(plant, clock)


@pytest.fixture
async def large(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> CarrierAccount:
    """An account with more cards than one run looks at, between those of another."""
    monkeypatch.setattr("junhong_cmp.polling.protect_sweep._SMALL_SPAN", 3)
    account = await add_account(plant.pool, "large", protect_enabled=True)
    await plant.pool.execute("UPDATE carrier_account SET updated_at = now() - interval '1 hour'")
    await plant.config.refresh()
    return account


async def over_threshold(plant: Plant, account: CarrierAccount, other: CarrierAccount) -> list[Card]:
    cards: list[Card] = []
    for number in range(25):
        cards += await add_cards(plant.pool, account, 1, first=100 + number)
        await add_cards(plant.pool, other, 1, first=500 + number)
    await plant.pool.execute(
        "UPDATE iot_card SET status = 'active', threshold_kb = 1000, cycle = $1, cycle_used_kb = 1000", CYCLE
    )
    return cards


async def sweep(rules: RuleParts, cause: SweepCause = SweepCause.USAGE) -> list[int]:
    await rules.sweep.sweep(cause, draining=asyncio.Event())
    return await rules.handed_over()


async def test_an_hour_of_runs_finds_every_card_once_and_no_run_looks_at_all(
    plant: Plant, rules: RuleParts, account: CarrierAccount, large: CarrierAccount, clock: FakeClock
) -> None:
    cards = await over_threshold(plant, large, account)
    found: list[int] = []
    for run in range(12):
        handed = await sweep(rules)
        assert len(handed) <= 3
        found += handed
        early_or_late = timedelta(seconds=20 if run % 2 else -20)
        clock.advance(PERIOD + early_or_late)
    assert sorted(found) == [card.id for card in cards]


async def test_an_account_changed_lately_has_every_card_looked_at_but_not_one_that_was_paused(
    plant: Plant, rules: RuleParts, account: CarrierAccount, large: CarrierAccount
) -> None:
    cards = await over_threshold(plant, large, account)
    await plant.pool.execute("UPDATE carrier_account SET updated_at = now(), paused_at = now()")
    assert len(await sweep(rules)) <= 3
    await plant.pool.execute("UPDATE carrier_account SET paused_at = NULL")
    assert await sweep(rules) == [card.id for card in cards]


async def test_a_plan_changed_lately_has_every_card_looked_at(
    plant: Plant, rules: RuleParts, account: CarrierAccount, large: CarrierAccount
) -> None:
    cards = await over_threshold(plant, large, account)
    await plant.pool.execute("UPDATE iot_card SET threshold_kb = NULL, plan = 'S'")
    await record_plan(plant.pool, large.id, "S", 900)
    assert await sweep(rules) == [card.id for card in cards]
    await plant.pool.execute("UPDATE data_plan SET updated_at = now() - interval '1 hour'")
    assert len(await sweep(rules)) <= 3


async def test_a_pool_that_is_used_up_has_all_its_cards_stopped_at_once(
    plant: Plant, rules: RuleParts, account: CarrierAccount, large: CarrierAccount
) -> None:
    cards = await over_threshold(plant, large, account)
    pool_id = await plant.pool.fetchval(
        "INSERT INTO data_pool (account_id, name, capacity_kb, cycle, used_kb) VALUES ($1, 'P', 10, $2, 10)"
        " RETURNING id",
        large.id,
        CYCLE,
    )
    await plant.pool.execute("UPDATE iot_card SET threshold_kb = NULL, pool_id = $1", pool_id)
    assert await sweep(rules) == []
    assert await sweep(rules, SweepCause.POOL) == [card.id for card in cards]
    async with plant.pool.acquire() as conn:
        assert await count_candidates(conn, large, SweepCause.USAGE, rules.clock.now()) == len(cards)


async def test_an_account_without_cards_is_swept_as_well(
    plant: Plant, rules: RuleParts, large: CarrierAccount
) -> None:
    assert large.code in {account.code for account in plant.config.snapshot.accounts.values()}
    for cause in SweepCause:
        assert await sweep(rules, cause) == []
