"""G1: a carrier that is slow, silent or trickles costs time within bounds, and only its own account's."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from tests.gateway.clients import ACCOUNT, CARD, NEVER_OPENS, SHORT, gateway_for
from tests.gateway.scripted_server import Exchange, Respond, http_answer, scripted_server
from tests.waiting import wait_until

from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.errors import GatewayError, Transient
from junhong_cmp.gateway.http import HttpGateway
from junhong_cmp.gateway.simulator import CarrierSimulator
from junhong_cmp.gateway.transport import GatewayTimeouts
from junhong_cmp.gateway.tuning import GatewayTuning
from junhong_cmp.polling.settings import PollingSettings

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n"


async def silence(_: Exchange) -> None:
    await asyncio.Event().wait()


def trickle(first: bytes, drop: bytes) -> Respond:
    async def respond(exchange: Exchange) -> None:
        await exchange.send(first)
        while True:
            await exchange.send(drop)
            await asyncio.sleep(0.05)

    return respond


@pytest.mark.parametrize(
    ("respond", "reason"),
    [
        (silence, "等待网关应答超时"),
        (trickle(HEAD + b"\r\n", b" "), "总时限"),
        (trickle(HEAD, b"X"), "总时限"),
        (trickle(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "总时限"),
    ],
    ids=["never", "body drop by drop", "head drop by drop", "endless interim answers"],
)
async def test_a_call_ends_within_its_total_time(respond: Respond, reason: str) -> None:
    tuning = GatewayTuning(timeouts=SHORT)
    async with scripted_server(respond) as server, gateway_for(server.url, tuning) as gateway:
        began = time.monotonic()
        with pytest.raises(Transient, match=reason) as caught:
            await gateway.query_usage(ACCOUNT, CARD)
        assert time.monotonic() - began < 2
    assert caught.value.maybe_executed is True


async def test_an_answer_that_stops_half_way_is_a_read_timeout() -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.send(http_answer(b'{"iccid": "8986')[:-3])
        await asyncio.Event().wait()

    tuning = GatewayTuning(timeouts=SHORT)
    async with scripted_server(half) as server, gateway_for(server.url, tuning) as gateway:
        with pytest.raises(Transient, match="等待网关应答超时"):
            await gateway.query_usage(ACCOUNT, CARD)


def test_every_wait_is_shorter_than_the_one_around_it() -> None:
    timeouts, polling = GatewayTimeouts(), PollingSettings()
    patience = GatewayTuning().patience
    assert timeouts.connect < timeouts.total
    assert timeouts.read < timeouts.total
    assert patience + timeouts.total < polling.turn_timeout <= polling.slot_lease
    assert polling.turn_timeout < polling.visibility


async def p95_of(calls: int, ask: Callable[[int], Awaitable[object]]) -> float:
    """Ask so many times, eight at a time, and return the 95th percentile in seconds."""
    times: list[float] = []
    numbers = iter(range(calls))

    async def ask_on() -> None:
        for number in numbers:
            began = time.perf_counter()
            await ask(number)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(ask_on() for _ in range(8)))
    return statistics.quantiles(times, n=20)[-1]


async def keep_asking(gateway: HttpGateway, account: GatewayAccount) -> None:
    while True:
        try:
            await gateway.query_usage(account, CARD)
        except GatewayError:
            await asyncio.sleep(0.01)


async def test_a_slow_account_leaves_the_p95_of_another_where_it_was(simulator: CarrierSimulator) -> None:
    """Both are measured in turns within one run, so that the machine's own moods meet both alike."""

    async def slow(_: Exchange) -> None:
        await asyncio.sleep(30)

    tuning = GatewayTuning(patience=timedelta(seconds=0.2), breaker=NEVER_OPENS)
    slow_p95, alone_p95 = [], []
    async with scripted_server(slow) as server, gateway_for(simulator.url, tuning) as gateway:
        slow_account = ACCOUNT._replace(id=2, code="slow", base_url=server.url)

        async def ask(number: int) -> None:
            await gateway.query_usage(ACCOUNT, CardRef(number, CARD.iccid))

        await p95_of(100, ask)
        for _ in range(5):
            alone_p95.append(await p95_of(150, ask))
            stuck = [asyncio.create_task(keep_asking(gateway, slow_account)) for _ in range(200)]
            begun = len(server.exchanges)
            await wait_until(
                lambda begun=begun: len(server.exchanges) == begun + 64,
                description="the slow account's places are full",
            )
            slow_p95.append(await p95_of(150, ask))
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
    ratio = statistics.median(slow_p95) / statistics.median(alone_p95)
    assert ratio < 2, f"{ratio:.2f}: {alone_p95} alone, {slow_p95} beside a slow account"
