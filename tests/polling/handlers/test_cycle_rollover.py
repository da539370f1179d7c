"""Cycles close by billing day and time zone, and a late reading is never lost to it."""

from datetime import UTC, datetime
from typing import Any

from structlog.testing import capture_logs
from tests.polling.handlers.firing import fire
from tests.polling.handlers.readings import cycles, read
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.handlers.cycle_rollover import CycleRolloverHandler


def at(day: int, hour: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


def handler_of(plant: Plant, clock: FakeClock, **changes: Any) -> CycleRolloverHandler:
    return CycleRolloverHandler(plant.pool, RuleParts(plant, clock).sweep, clock=clock, **changes)


async def test_cycles_close_once_their_noisy_days_are_over(pool: Pool, plant: Plant) -> None:
    first, second = await add_account(pool, "a"), await add_account(pool, "b", billing_day=27)
    lost = await add_account(pool, "lost", tz="Mars/Olympus")
    silent = await add_cards(pool, first, 5)
    (other,) = await add_cards(pool, second, 1, first=10)
    await add_cards(pool, lost, 1, first=20)
    await read(pool, [*silent, other], 100, at(20, month=2))
    clock = FakeClock(at(3, 15))
    handler = handler_of(plant, clock, chunk=2)
    await fire(handler)
    assert await cycles(pool, silent[0]) == [("2026-02-01", 100, False)]
    assert await cycles(pool, other) == [("2026-01-27", 100, True)]  # the 27th was days ago
    clock.advance(3600)
    with capture_logs() as logs:
        await fire(handler)
        await fire(handler)
    assert [(entry["event"], entry["account"], entry["cards"]) for entry in logs] == [
        ("计费周期已结转", "a", 5)
    ]
    assert all([await cycles(pool, card) == [("2026-02-01", 100, True)] for card in silent])


async def test_a_late_reading_counts_and_the_next_firing_closes_again(pool: Pool, plant: Plant) -> None:
    account = await add_account(pool, "a")
    cards = await add_cards(pool, account, 1)
    await read(pool, cards, 100, at(20, month=2))
    handler = handler_of(plant, FakeClock(at(10)))
    await fire(handler)
    await read(pool, cards, 130, at(27, month=2))
    assert await cycles(pool, cards[0]) == [("2026-02-01", 130, False)]
    await fire(handler)
    assert await cycles(pool, cards[0]) == [("2026-02-01", 130, True)]
    await read(pool, cards, 7, at(10))
    assert await cycles(pool, cards[0]) == [("2026-02-01", 130, True), ("2026-03-01", 7, False)]


async def test_it_ends_when_the_server_stops(pool: Pool, plant: Plant) -> None:
    account = await add_account(pool, "a")
    cards = await add_cards(pool, account, 1)
    await read(pool, cards, 100, at(20, month=2))
    await fire(handler_of(plant, FakeClock(at(10))), draining=True)
    assert await cycles(pool, cards[0]) == [("2026-02-01", 100, False)]
