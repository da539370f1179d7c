"""The how-to's carrier is built from its page, and asked."""

import asyncio
import re
import types
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.gateway.clients import CREDENTIAL, gateway_for

from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCalls
from junhong_cmp.gateway.drivers.table import DRIVERS, DriverDefaults, DriverParts, DriverRow, change_rest_of
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    CardUnknown,
    GatewayError,
    NotOffered,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.http import HttpGateway
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_cards import CardBook, expected_usage_kb
from junhong_cmp.gateway.simulators.dialect import Dialect, SimulatorParts
from junhong_cmp.gateway.simulators.table import SIMULATORS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-carrier.md"
ACCOUNT = GatewayAccount(1, "pigeon-main", driver="pigeon")


@dataclass(frozen=True)
class Carrier:
    row: DriverRow
    dialect: Callable[[SimulatorParts], Dialect]


def module(name: str, source: str, **names: object) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__dict__.update(names)
    exec(compile(source, f"{PAGE.name}:{name}", "exec"), made.__dict__)  # noqa: S102 - our own page
    return made


@pytest.fixture(scope="module")
def carrier() -> Carrier:
    driver, row, dialect = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    given = (DriverParts, GatewayCalls, DriverRow, DriverDefaults, timedelta)
    table = module(
        "pigeon_row",
        row,
        PigeonDriver=module("pigeon_driver", driver).PigeonDriver,
        **{each.__name__: each for each in given},
    )
    return Carrier(table.ROW, module("pigeon_dialect", dialect).PigeonDialect)


@pytest.fixture(autouse=True)
def rows(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the two rows."""
    monkeypatch.setitem(DRIVERS, "pigeon", carrier.row)
    monkeypatch.setitem(SIMULATORS, "pigeon", carrier.dialect)


async def talk(config: SimulatorConfig) -> AsyncIterator[HttpGateway]:
    simulator = CarrierSimulator(config)
    await simulator.start()
    try:
        async with gateway_for(simulator.url) as gateway:
            yield gateway
    finally:
        await simulator.stop()


@pytest.fixture
async def gateway() -> AsyncIterator[HttpGateway]:
    async for opened in talk(SimulatorConfig(credential=CREDENTIAL, driver="pigeon")):
        yield opened


@pytest.fixture
def card() -> CardRef:
    """A card that runs."""
    book = CardBook(seed=0, unknown_rate=0, operation_delay=timedelta(0))
    numbers = (f"8986001234567{number:07d}" for number in range(100))
    return CardRef(1, next(iccid for iccid in numbers if book.status(iccid, datetime.now(UTC)) == "active"))


async def test_it_tells_usage_state_and_name(gateway: HttpGateway, card: CardRef) -> None:
    usage = await gateway.query_usage(ACCOUNT, card)
    assert abs(usage.used_kb - expected_usage_kb(card.iccid, usage.reading_at)) < 100
    assert (await gateway.query_status(ACCOUNT, card)).status == "active"
    assert (await gateway.query_realname(ACCOUNT, card)).status in {"verified", "unverified"}


async def test_it_stops_a_card_once(gateway: HttpGateway, card: CardRef) -> None:
    await gateway.stop(ACCOUNT, card, "op-1")
    assert (await gateway.query_status(ACCOUNT, card)).status == "suspended"
    with pytest.raises(AlreadyDone):
        await gateway.stop(ACCOUNT, card, "op-2")
    assert change_rest_of(ACCOUNT) == timedelta(minutes=3)


async def test_what_it_lacks_is_told_without_a_call(gateway: HttpGateway, card: CardRef) -> None:
    for call in (gateway.list_cards(ACCOUNT, None), gateway.query_session(ACCOUNT, card)):
        with pytest.raises(NotOffered, match="pigeon"):
            await call


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (SimulatorConfig(credential=CREDENTIAL, driver="pigeon", unknown_rate=1), CardUnknown),
        (SimulatorConfig(credential=CREDENTIAL, driver="pigeon", error_rate=1), Transient),
        (SimulatorConfig(credential=CREDENTIAL, driver="pigeon", throttle_qps=0.01), Throttled),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
async def test_it_says_what_to_do(
    config: SimulatorConfig, expected: type[GatewayError], card: CardRef
) -> None:
    async for gateway in talk(config):
        calls = [gateway.query_usage(ACCOUNT, card) for _ in range(2)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert expected in {type(outcome) for outcome in outcomes}
