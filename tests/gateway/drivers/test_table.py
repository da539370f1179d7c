import inspect
import re
from datetime import timedelta
from pathlib import Path

import pytest
from tests.gateway.clients import ACCOUNT

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.clock import SystemClock
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayCalls
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.table import DRIVERS, DriverParts, DriverRow, batch_size_of, change_rest_of
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.gateway.quantities import whole_kb
from junhong_cmp.gateway.simulators.table import SIMULATORS
from junhong_cmp.gateway.tokens import TokenStore
from junhong_cmp.gateway.transport import GatewayTimeouts, HttpTransport

ROOT = Path(__file__).parents[3]
each_row = pytest.mark.parametrize("row", DRIVERS.values(), ids=DRIVERS)
CALLS = [name for name, call in inspect.getmembers(GatewayCalls, inspect.isfunction) if name[0] != "_"]


@pytest.fixture
def parts() -> DriverParts:
    """What a driver is made of, without a key to use it with."""
    policy = EndpointPolicy(allow_http=False, allowed_hosts={"gw.example.com"})
    directory = Directory(policy, base_url="https://gw.example.com", credentials={}, default_credential=None)
    clock = SystemClock()
    return DriverParts(HttpTransport(GatewayTimeouts()), directory, clock, TokenStore(clock))


@each_row
def test_a_driver_has_every_call(row: DriverRow, parts: DriverParts) -> None:
    driver = row.open(parts)
    for name in CALLS:
        wanted = inspect.signature(getattr(GatewayCalls, name))
        given = inspect.signature(getattr(type(driver), name))
        assert list(given.parameters) == list(wanted.parameters), name
        assert inspect.iscoroutinefunction(getattr(driver, name)), name


@each_row
async def test_a_driver_without_a_key_is_not_configured(row: DriverRow, parts: DriverParts) -> None:
    account = ACCOUNT._replace(driver=row.name)
    with pytest.raises(GatewayNotConfigured):
        await row.open(parts).query_usage(account, CardRef(1, "89860012345678900017"))


@each_row
def test_a_rows_defaults_can_be_an_accounts(row: DriverRow) -> None:
    assert row.carrier in set(Carrier)
    assert 1 <= row.defaults.billing_day <= 28
    assert whole_kb(1024, None, default_unit=row.defaults.usage_unit) > 0
    assert all(size > 1 for size in row.defaults.batch_sizes.values())
    assert timedelta(0) <= row.defaults.change_rest < timedelta(hours=1)


@each_row
async def test_no_batch_is_larger_than_the_row_says(row: DriverRow, parts: DriverParts) -> None:
    driver = row.open(parts)
    account = GatewayAccount(1, "a", driver=row.name)
    calls = {
        GatewayCall.USAGE: driver.query_usage_batch,
        GatewayCall.STATUS: driver.query_status_batch,
        GatewayCall.REALNAME: driver.query_realname_batch,
    }
    for call, size in row.defaults.batch_sizes.items():
        cards = [CardRef(number, f"8986001234567{number:07d}") for number in range(size + 1)]
        with pytest.raises(ValueError, match=str(size)):
            await calls[call](account, cards)
        with pytest.raises(GatewayNotConfigured):
            await calls[call](account, cards[:size])
    for ask in calls.values():
        assert await ask(account, []) == {}


def test_every_driver_can_be_simulated_and_is_described() -> None:
    assert SIMULATORS.keys() == DRIVERS.keys()
    for name in DRIVERS.keys() - {"generic"}:
        assert (ROOT / "docs" / "reference" / "carriers" / f"{name}.md").is_file()


def test_a_driver_is_one_file_and_its_private_neighbours() -> None:
    folder = ROOT / "src" / "junhong_cmp" / "gateway" / "drivers"
    for path in folder.glob("*.py"):
        for other in re.findall(r"gateway\.drivers\.(\w+)", path.read_text(encoding="utf-8")):
            owner = other.split("_")[0]
            if path.stem != "table" and owner in DRIVERS:
                assert owner == path.stem.split("_")[0], f"{path.name} knows of {other}"


def test_limits_are_the_stricter_of_what_both_sides_say() -> None:
    onelink = GatewayAccount(1, "a", driver="onelink", batch_size=500)
    assert batch_size_of(onelink, GatewayCall.USAGE) == 100
    assert batch_size_of(onelink._replace(batch_size=20), GatewayCall.USAGE) == 20
    assert change_rest_of(onelink) == timedelta(minutes=3)
    assert change_rest_of(onelink._replace(change_rest=timedelta(minutes=5))) == timedelta(minutes=5)
    stranger = onelink._replace(driver="carrier-pigeon", change_rest=timedelta(seconds=1))
    assert (batch_size_of(stranger, GatewayCall.USAGE), change_rest_of(stranger)) == (1, timedelta(seconds=1))
