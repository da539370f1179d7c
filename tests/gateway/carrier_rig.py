"""A driver of the table that asks a URL: a simulated carrier's, or a server that answers as a test wrote."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from tests.gateway.scripted_server import Exchange, Respond, scripted_server

from junhong_cmp.clock import SystemClock
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCalls
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.table import DRIVERS, DriverParts
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.tokens import TokenStore
from junhong_cmp.gateway.transport import GatewayTimeouts, HttpTransport

CREDENTIALS = {
    "generic": Credential("demo", "canary-0123456789abcdef"),
    "onelink": Credential("200216378200200000", "canary-pw"),
    "unicom": Credential("app.open-id", "canary-secret"),
    "ctcc": Credential("user", "canary-passwordabcdefghi"),
}


def account_of(driver: str) -> GatewayAccount:
    return GatewayAccount(id=1, code="账号", driver=driver, batch_size=50)


@asynccontextmanager
async def asking(driver: str, url: str, credential: Credential | None = None) -> AsyncIterator[GatewayCalls]:
    """Yield the driver as its row of the table makes it, over real sockets."""
    clock = SystemClock()
    transport = HttpTransport(GatewayTimeouts(read=timedelta(seconds=5)))
    directory = Directory(
        EndpointPolicy(allow_http=True, allowed_hosts=["127.0.0.1"]),
        base_url=url,
        credentials={},
        default_credential=credential or CREDENTIALS[driver],
    )
    await transport.open()
    try:
        yield DRIVERS[driver].open(DriverParts(transport, directory, clock, TokenStore(clock)))
    finally:
        await transport.close()


@asynccontextmanager
async def carrier(config: SimulatorConfig) -> AsyncIterator[tuple[CarrierSimulator, GatewayCalls]]:
    """Run a simulated carrier and yield it with a driver that has the right key."""
    simulator = CarrierSimulator(config)
    await simulator.start()
    try:
        async with asking(config.driver, simulator.url, config.credential) as driver:
            yield simulator, driver
    finally:
        await simulator.stop()


async def outcome_of(
    driver: str, respond: Respond, card: CardRef, *, call: str = "query_usage"
) -> tuple[object, list[Exchange]]:
    """Return what a call about a card comes to, its error included, and what the server was sent."""
    arguments = (card, "request-1") if call in {"stop", "resume", "query_operation"} else (card,)
    async with scripted_server(respond) as server, asking(driver, server.url) as calls:
        try:
            return await getattr(calls, call)(account_of(driver), *arguments), server.exchanges
        except GatewayError as error:
            return error, server.exchanges
