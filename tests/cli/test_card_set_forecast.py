"""What is said beforehand of cards whose limits change."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import Card, CardStatus, StopReason
from junhong_cmp.cards.pool_store import list_pool_use, put_cards, record_pool, recount_pools
from junhong_cmp.cards.store import load_cards
from junhong_cmp.cards.usage import CycleId, billing_cycle
from junhong_cmp.cli.card_set_forecast import Forecast
from junhong_cmp.db.pool import Pool


async def foreseen(pool: Pool, **account: Any) -> tuple[Forecast, Card]:
    """Return the forecast for an active card that has used 600 KB in this cycle, and the card."""
    owner = await add_account(pool, **account)
    (card,) = await add_cards(pool, owner, 1)
    await record_plan(pool, owner.id, "S", 500)
    cycle = billing_cycle(datetime.now(UTC), 1, ZoneInfo("Asia/Shanghai"))
    await pool.execute("UPDATE iot_card SET status = 'active', cycle = $1, cycle_used_kb = 600", cycle)
    return await Forecast.load(pool, [card], [owner]), (await load_cards(pool, [card.id]))[card.id]


@pytest.mark.parametrize(
    ("changes", "stops"),
    [
        ({}, False),
        ({"threshold_kb": 600}, True),
        ({"threshold_kb": 601}, False),
        ({"plan": "S"}, True),
        ({"plan": "unknown"}, False),
        ({"threshold_kb": 600, "status": CardStatus.SUSPENDED}, False),
        ({"threshold_kb": 600, "cycle": "2020-01-01"}, False),
    ],
)
async def test_a_card_beyond_a_limit_is_to_stop(pool: Pool, changes: dict[str, Any], *, stops: bool) -> None:
    forecast, card = await foreseen(pool, protect_enabled=True)
    assert forecast.is_to_stop(card._replace(**changes)) is stops


@pytest.mark.parametrize(
    "account", [{"protect_enabled": False}, {"protect_enabled": True, "tz": "Mars/Olympus"}]
)
async def test_nothing_stops_where_nobody_wants_it_or_knows_the_cycle(
    pool: Pool, account: dict[str, Any]
) -> None:
    forecast, card = await foreseen(pool, **account)
    assert not forecast.is_to_stop(card._replace(threshold_kb=1))


@pytest.mark.parametrize(
    ("before", "after", "resumes"),
    [
        ({"threshold_kb": 600}, {"threshold_kb": 601}, True),
        ({"threshold_kb": 600}, {"threshold_kb": None}, True),
        ({"threshold_kb": 600}, {"threshold_kb": 500}, False),
        ({"threshold_kb": 600}, {"threshold_kb": None, "plan": "S"}, False),
        ({"threshold_kb": 700}, {"threshold_kb": 800}, False),
    ],
)
async def test_a_card_stopped_for_what_it_exceeds_no_more_is_to_resume(
    pool: Pool, before: dict[str, Any], after: dict[str, Any], *, resumes: bool
) -> None:
    forecast, card = await foreseen(pool)
    stopped = card._replace(status=CardStatus.SUSPENDED, stop_reason=StopReason.THRESHOLD, **before)
    assert forecast.is_to_resume(stopped, stopped._replace(**after)) is resumes
    by_hand = stopped._replace(stop_reason=StopReason.MANUAL)
    assert not forecast.is_to_resume(by_hand, by_hand._replace(**after))


async def test_its_pool_counts_as_well(pool: Pool) -> None:
    _, card = await foreseen(pool, protect_enabled=True)
    await record_pool(pool, card.account_id, "池", 600, None)
    (made,) = await list_pool_use(pool)
    async with pool.acquire() as conn:
        await put_cards(conn, card.account_id, made.id, [card.id])
        await recount_pools(conn, [made.id], CycleId(card.cycle or ""))
    owner = await add_account(pool, protect_enabled=True)
    assert (await Forecast.load(pool, [card], [owner])).is_to_stop(card)


async def test_accounts_that_do_not_know_a_plan_are_named(pool: Pool) -> None:
    forecast, card = await foreseen(pool)
    assert forecast.codes_without([card], "S") == []
    assert forecast.codes_without([card], "L") == ["demo"]
