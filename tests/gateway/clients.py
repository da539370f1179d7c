"""Gateway clients for the tests, by address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.http import HttpGateway, open_http_gateway
from junhong_cmp.gateway.limits.breaker import BreakerSettings
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.transport import GatewayTimeouts
from junhong_cmp.gateway.tuning import GatewayTuning

CREDENTIAL = Credential("demo", "canary-secret-of-the-tests")
ACCOUNT = GatewayAccount(id=1, code="移动-主账号")
CARD = CardRef(1, "89860012345678900017")
SHORT = GatewayTimeouts(
    connect=timedelta(seconds=0.3), read=timedelta(seconds=0.3), total=timedelta(seconds=0.8)
)
NEVER_OPENS = BreakerSettings(min_calls=10**9)


@asynccontextmanager
async def gateway_for(url: str, tuning: GatewayTuning | None = None) -> AsyncIterator[HttpGateway]:
    gateway = open_http_gateway(
        base_url=url,
        credentials={},
        default_credential=CREDENTIAL,
        tuning=tuning or GatewayTuning(),
        allow_http=True,
    )
    await gateway.open()
    try:
        yield gateway
    finally:
        await gateway.close()
