"""A running simulator and a client for it."""

from collections.abc import AsyncIterator

import pytest

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.http import HttpGateway, open_http_gateway
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig


@pytest.fixture
def credential() -> Credential:
    return Credential("demo", "canary-secret-of-the-tests")


@pytest.fixture
def account() -> GatewayAccount:
    return GatewayAccount(id=1, code="移动-主账号")


@pytest.fixture
async def simulator(credential: Credential) -> AsyncIterator[CarrierSimulator]:
    simulator = CarrierSimulator(SimulatorConfig(credential=credential, seed=7))
    await simulator.start()
    yield simulator
    await simulator.stop()


@pytest.fixture
async def gateway(simulator: CarrierSimulator, credential: Credential) -> AsyncIterator[HttpGateway]:
    gateway = open_http_gateway(
        base_url=simulator.url, credentials={}, default_credential=credential, allow_http=True
    )
    await gateway.open()
    yield gateway
    await gateway.close()
