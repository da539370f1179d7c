"""Cards are stopped, followed up and resumed at every carrier there is a driver for, over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis
from tests.polling.handlers.firing import fire
from tests.polling.plant import Plant, add_account
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import Card, CardStatus, CarrierAccount, NewCard, StopReason
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.http import HttpGateway, open_http_gateway
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.polling.operation_rules import ASK_AFTER

CREDENTIALS = {
    "generic": Credential("demo", "canary-secret-of-the-tests"),
    "onelink": Credential("200000000001", "canary-secret"),
    "unicom": Credential("app.open-id", "canary-secret"),
    "ctcc": Credential("user", "canary-passwordabcdefghi"),
}
SEED = 7


def running_card() -> str:
    book = CardBook(seed=SEED, unknown_rate=0, operation_delay=timedelta(0))
    numbers = (f"8986001234567{number:07d}" for number in range(100))
    return next(iccid for iccid in numbers if book.status(iccid, datetime.now(UTC)) == "active")


@asynccontextmanager
async def carrier(driver: str, delay: timedelta = timedelta(0)) -> AsyncIterator[tuple[str, HttpGateway]]:
    config = SimulatorConfig(credential=CREDENTIALS[driver], driver=driver, seed=SEED, operation_delay=delay)
    simulator = CarrierSimulator(config)
    await simulator.start()
    gateway = open_http_gateway(
        base_url=simulator.url, credentials={}, default_credential=CREDENTIALS[driver], allow_http=True
    )
    await gateway.open()
    try:
        yield simulator.url, gateway
    finally:
        await gateway.close()
        await simulator.stop()


async def over_limit(pool: Pool, account: CarrierAccount, cycle: str) -> Card:
    async with pool.acquire() as conn, conn.transaction():
        (card,) = await insert_cards(conn, account.id, [NewCard(iccid=running_card())])
    await pool.execute(
        "UPDATE iot_card SET status = 'active', threshold_kb = 1000, cycle = $1, cycle_used_kb = 2000", cycle
    )
    return card


@pytest.fixture
async def protected(pool: Pool, driver: str) -> CarrierAccount:
    billing_day = DRIVERS[driver].defaults.billing_day
    return await add_account(
        pool,
        "protected",
        carrier=Carrier(DRIVERS[driver].carrier),
        driver=driver,
        protect_enabled=True,
        billing_day=billing_day,
        operation_min_gap=timedelta(0),
    )


@pytest.mark.parametrize("driver", sorted(DRIVERS))
async def test_a_card_over_its_limit_is_stopped_and_resumed_in_the_new_cycle(
    plant: Plant, protected: CarrierAccount, redis: Redis, clock: FakeClock, driver: str
) -> None:
    cycle = f"2026-0{2 if protected.billing_day > 1 else 3}-{protected.billing_day:02d}"
    card = await over_limit(plant.pool, protected, cycle)
    await plant.config.refresh()
    async with carrier(driver) as (_, gateway):
        rules = RuleParts(plant, clock)
        await rules.run_protect(card, gateway=gateway)
        clock.advance(ASK_AFTER + timedelta(seconds=1))
        await fire(rules.followup(gateway=gateway))
        assert await rules.operations() == [("stop", "threshold", "done")]
        after = await rules.reload(card)
        assert (after.status, after.stop_reason) == (CardStatus.SUSPENDED, StopReason.THRESHOLD)
        if DRIVERS[driver].defaults.change_rest:
            return  # this carrier has no card changed again for minutes
        clock.advance(timedelta(days=31))
        await rules.run_protect(card, gateway=gateway)
        clock.advance(ASK_AFTER + timedelta(seconds=1))
        await fire(rules.followup(gateway=gateway))
        assert (await rules.operations())[1:] == [("resume", "cycle_rollover", "done")]
        assert (await rules.reload(card)).status is CardStatus.ACTIVE


@pytest.mark.parametrize("driver", ["generic"])
async def test_a_carrier_that_takes_its_time_is_followed_to_the_end(
    plant: Plant, protected: CarrierAccount, clock: FakeClock
) -> None:
    card = await over_limit(plant.pool, protected, "2026-03-01")
    await plant.config.refresh()
    async with carrier("generic", delay=timedelta(hours=1)) as (_, gateway):
        rules = RuleParts(plant, clock)
        await rules.run_protect(card, gateway=gateway)
        for _ in range(2):
            clock.advance(ASK_AFTER + timedelta(seconds=1))
            await fire(rules.followup(gateway=gateway))
            assert await rules.operations() == [("stop", "threshold", "sent")]
        assert (await rules.reload(card)).status is CardStatus.ACTIVE, "it is not stopped yet"
