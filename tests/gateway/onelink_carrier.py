"""The simulated OneLink on a socket, with a clock that a test moves, and a driver that asks it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import orjson
from aiohttp import web
from tests.gateway.scripted_server import Exchange, Respond, json_answer
from tests.waiting import FakeClock

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.directory import Directory
from junhong_cmp.gateway.drivers.onelink import OneLinkDriver
from junhong_cmp.gateway.drivers.onelink_wire import TOKEN_PATH
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulators.dialect import Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.onelink import OneLinkDialect
from junhong_cmp.gateway.tokens import TokenStore
from junhong_cmp.gateway.transport import GatewayTimeouts, HttpTransport

CREDENTIAL = Credential("200216378200200000", "canary-pw")
ACCOUNT = GatewayAccount(id=1, code="移动-主账号", driver="onelink")
START = datetime(2026, 3, 10, 4, 30, tzinfo=UTC)


@dataclass
class Carrier:
    """A carrier keeps every request it was sent; ``outcomes`` are its words for what it did with them."""

    book: CardBook
    dialect: OneLinkDialect
    clock: FakeClock
    url: str = ""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)

    def count(self, path: str) -> int:
        return sum(asked == path for asked, _ in self.asked)

    def expire_token(self) -> None:
        self.dialect._desk._ends_at = self.clock.now()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.path, orjson.loads(body)))
        asked = Request(request.method, request.path, request.query, request.headers, body)
        admitted = self.dialect.admit(asked, self.clock.now())
        reply = admitted if isinstance(admitted, Reply) else self.dialect.answer(admitted, self.clock.now())
        self.outcomes.append(reply.outcome)
        return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)


@asynccontextmanager
async def onelink_carrier(clock: FakeClock, *, unknown_rate: float = 0.0) -> AsyncIterator[Carrier]:
    book = CardBook(seed=7, unknown_rate=unknown_rate, operation_delay=timedelta(0))
    carrier = Carrier(book, OneLinkDialect(SimulatorParts(book, CREDENTIAL)), clock)
    runner = web.ServerRunner(web.Server(carrier.serve, access_log=None), shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    carrier.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield carrier
    finally:
        await runner.cleanup()


@asynccontextmanager
async def onelink_driver(
    url: str, clock: FakeClock, credential: Credential = CREDENTIAL
) -> AsyncIterator[OneLinkDriver]:
    directory = Directory(
        EndpointPolicy(allow_http=True, allowed_hosts={"127.0.0.1"}),
        base_url=url,
        credentials={},
        default_credential=credential,
    )
    transport, tokens = HttpTransport(GatewayTimeouts()), TokenStore(clock)
    await transport.open()
    try:
        yield OneLinkDriver(transport, directory, clock, tokens)
    finally:
        await tokens.close()
        await transport.close()


def answer(*items: object, status: object = "0", message: object = "正确") -> bytes:
    """An answer in OneLink's form."""
    return json_answer({"status": status, "message": message, "result": list(items)})


def after_token(answers: Sequence[bytes]) -> Respond:
    """Give a token whenever asked for one, and the answers in turn to everything else, the last for ever."""
    left = list(answers)

    async def respond(exchange: Exchange) -> None:
        if TOKEN_PATH.encode() in exchange.head:
            await exchange.send(answer({"token": "good", "ttl": "3600"}))
        else:
            await exchange.send(left.pop(0) if len(left) > 1 else left[0])

    return respond
