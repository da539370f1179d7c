"""Every driver against its own simulator: what is unknown, too fast, broken or signed with another key."""

import asyncio
from dataclasses import replace

import pytest
from tests.gateway.carrier_rig import CREDENTIALS, account_of, asking, carrier

from junhong_cmp.gateway.client import CardRef, GatewayCall, UsageAnswer
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.errors import AuthRejected, CardUnknown, NotOffered, Throttled, Transient
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig

CARDS = [CardRef(number, f"898603{number:013d}5") for number in range(1, 11)]
CARD = CARDS[0]
each_driver = pytest.mark.parametrize("name", DRIVERS)


def config_of(name: str) -> SimulatorConfig:
    return SimulatorConfig(credential=CREDENTIALS[name], driver=name, seed=7)


@each_driver
async def test_cards_it_does_not_know_are_unknown(name: str) -> None:
    async with carrier(replace(config_of(name), unknown_rate=1.0)) as (_, driver):
        for ask in (driver.query_usage, driver.query_status, driver.query_realname):
            with pytest.raises(CardUnknown):
                await ask(account_of(name), CARD)
        with pytest.raises((CardUnknown, NotOffered)):
            await driver.query_session(account_of(name), CARD)
        for change in (driver.stop, driver.resume):
            with pytest.raises(CardUnknown):
                await change(account_of(name), CARD, "request-1")


@each_driver
async def test_calls_above_the_limit_are_throttled(name: str) -> None:
    async with carrier(replace(config_of(name), throttle_qps=2)) as (_, driver):
        await driver.query_usage(account_of(name), CARD)  # may need a token first, which counts
        asked = (driver.query_usage(account_of(name), card) for card in CARDS)
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert Throttled in {type(outcome) for outcome in outcomes} <= {Throttled, UsageAnswer}
        if GatewayCall.USAGE in DRIVERS[name].defaults.batch_sizes:
            with pytest.raises(Throttled):
                await driver.query_usage_batch(account_of(name), CARDS)


@each_driver
async def test_what_goes_wrong_at_random_is_transient(name: str) -> None:
    async with carrier(replace(config_of(name), error_rate=1.0)) as (_, driver):
        for card in CARDS:
            with pytest.raises(Transient):
                await driver.query_usage(account_of(name), card)


@each_driver
@pytest.mark.parametrize("part", ["key_id", "secret"])
async def test_another_key_is_refused(name: str, part: str) -> None:
    key = CREDENTIALS[name]
    other = replace(key, **{part: getattr(key, part)[:-1] + "Z"})
    simulator = CarrierSimulator(config_of(name))
    await simulator.start()
    try:
        async with asking(name, simulator.url, other) as driver:
            with pytest.raises(AuthRejected):
                await driver.query_usage(account_of(name), CARD)
    finally:
        await simulator.stop()
