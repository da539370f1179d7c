"""G2 and G3: a carrier that fails all the time, and one that asks for a rest."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from structlog.testing import capture_logs
from tests.gateway.clients import ACCOUNT, CARD, gateway_for
from tests.gateway.scripted_server import Exchange, always, http_answer, json_answer, scripted_server
from tests.waiting import wait_until

from junhong_cmp.gateway.client import UsageAnswer
from junhong_cmp.gateway.errors import BreakerOpen, Maintenance, Throttled, Transient
from junhong_cmp.gateway.limits.breaker import BreakerSettings
from junhong_cmp.gateway.tuning import GatewayTuning

TOLD_BY = 10
STORM = (
    http_answer(b"<html>", status="502 Bad Gateway", content_type="text/html"),
    json_answer({"error": {"code": "transient"}}, status="500 Internal Server Error"),
    http_answer(b"", status="503 Service Unavailable", content_type="text/plain"),
)


def usage() -> bytes:
    reading_at = datetime.now(UTC).isoformat()
    return json_answer({"iccid": CARD.iccid, "used": 1, "unit": "KB", "reading_at": reading_at})


async def test_g2_a_storm_of_errors_is_left_alone_and_found_to_be_over() -> None:
    over = asyncio.Event()

    async def storm(exchange: Exchange) -> None:
        await exchange.send(usage() if over.is_set() else STORM[exchange.number % len(STORM)])

    breaker = BreakerSettings(min_calls=20, rest=timedelta(seconds=0.2), longest_rest=timedelta(seconds=0.4))
    outcomes: list[type[Exception]] = []
    tuning = GatewayTuning(breaker=breaker)
    async with scripted_server(storm) as server, gateway_for(server.url, tuning) as gateway:
        with capture_logs() as logs:
            for _ in range(500):
                try:
                    await gateway.query_usage(ACCOUNT, CARD)
                except (Transient, BreakerOpen) as error:
                    outcomes.append(type(error))
                    await asyncio.sleep(0.001)
            asked_during_the_storm = len(server.exchanges)
            over.set()
            async with asyncio.timeout(5):
                while True:
                    try:
                        await gateway.query_usage(ACCOUNT, CARD)
                        break
                    except BreakerOpen as error:
                        await asyncio.sleep(error.pause.total_seconds())
            for _ in range(50):
                await gateway.query_usage(ACCOUNT, CARD)
    assert outcomes.count(Transient) == asked_during_the_storm
    assert 20 <= asked_during_the_storm < 30, "twenty tell it, the others were probes"
    assert outcomes.count(BreakerOpen) == 500 - asked_during_the_storm
    assert [entry["event"] for entry in logs] == ["网关熔断开启", "网关熔断半开", "网关熔断关闭"]


def pauses() -> Iterator[tuple[str, float, float]]:
    """Header, and the least and the most pause in seconds."""
    now = datetime.now(UTC)
    yield "7", 7, 7
    yield "0", 1, 1
    yield "3600", 3600, 3600
    yield "315360000", 3600, 3600
    yield "9" * 18, 3600, 3600
    yield "9" * 5000, 1, 1
    yield "-5", 1, 1
    yield "1.5", 1, 1
    yield "soon", 1, 1
    yield "", 1, 1
    yield "\u0668", 1, 1
    yield format_datetime(now + timedelta(minutes=2), usegmt=True), 110, 121
    yield format_datetime(now + timedelta(days=3650), usegmt=True), 3600, 3600
    yield format_datetime(now - timedelta(days=3650), usegmt=True), 1, 1
    yield "Sunday, 06-Nov-94 08:49:37 GMT", 1, 1
    yield "Sun Nov  6 08:49:37 1994", 1, 1
    yield "Mon, 99 Nov 2026 99:99:99 GMT", 1, 1


@pytest.mark.parametrize(
    ("status", "expected"), [("429 Too Many Requests", Throttled), ("503 Service Unavailable", Maintenance)]
)
async def test_g3_a_rest_is_kept_within_bounds(status: str, expected: type[Exception]) -> None:
    for header, least, most in pauses():
        answer = http_answer(b"", status=status, extra=f"Retry-After: {header}\r\n")
        async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
            with pytest.raises((Throttled, Maintenance, Transient)) as caught:
                await gateway.query_usage(ACCOUNT, CARD)
        if expected is Maintenance and isinstance(caught.value, Transient):
            continue  # a 503 whose Retry-After says nothing is a failure like any other
        assert isinstance(caught.value, expected), header
        assert isinstance(caught.value, Throttled | Maintenance)
        assert least <= caught.value.pause.total_seconds() <= most, header


async def test_g3_a_throttled_account_is_not_a_failing_one() -> None:
    answer = http_answer(b"", status="429 Too Many Requests", extra="Retry-After: 1\r\n")
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        for _ in range(60):
            with pytest.raises(Throttled):
                await gateway.query_usage(ACCOUNT, CARD)


async def test_g2_of_many_callers_one_finds_out_whether_it_is_over() -> None:
    hold = asyncio.Event()

    async def fail_then_hold(exchange: Exchange) -> None:
        if exchange.number < TOLD_BY:
            await exchange.send(STORM[0])
            return
        await hold.wait()
        await exchange.send(usage())

    breaker = BreakerSettings(min_calls=TOLD_BY, rest=timedelta(seconds=0.1))
    async with (
        scripted_server(fail_then_hold) as server,
        gateway_for(server.url, GatewayTuning(breaker=breaker)) as gateway,
    ):
        for _ in range(TOLD_BY):
            with pytest.raises(Transient):
                await gateway.query_usage(ACCOUNT, CARD)
        with pytest.raises(BreakerOpen) as caught:
            await gateway.query_usage(ACCOUNT, CARD)
        await asyncio.sleep(caught.value.pause.total_seconds())
        callers = [asyncio.create_task(gateway.query_usage(ACCOUNT, CARD)) for _ in range(50)]
        await wait_until(lambda: len(server.exchanges) > TOLD_BY, description="the probe has arrived")
        await wait_until(lambda: sum(caller.done() for caller in callers) == 49, description="49 gave way")
        hold.set()
        outcomes = await asyncio.gather(*callers, return_exceptions=True)
        assert sum(isinstance(outcome, BreakerOpen) for outcome in outcomes) == 49
        assert sum(isinstance(outcome, UsageAnswer) for outcome in outcomes) == 1
        await gateway.query_usage(ACCOUNT, CARD)
        assert len(server.exchanges) == TOLD_BY + 2


async def test_g2_a_caller_who_gives_up_on_the_probe_leaves_it_to_the_next() -> None:
    async def fail_then_hold(exchange: Exchange) -> None:
        if exchange.number < TOLD_BY:
            await exchange.send(STORM[0])
        elif exchange.number > TOLD_BY:
            await exchange.send(usage())

    breaker = BreakerSettings(min_calls=TOLD_BY, rest=timedelta(seconds=0.05))
    async with (
        scripted_server(fail_then_hold) as server,
        gateway_for(server.url, GatewayTuning(breaker=breaker)) as gateway,
    ):
        for _ in range(TOLD_BY):
            with pytest.raises(Transient):
                await gateway.query_usage(ACCOUNT, CARD)
        await asyncio.sleep(0.1)
        probe = asyncio.create_task(gateway.query_usage(ACCOUNT, CARD))
        await wait_until(lambda: len(server.exchanges) > TOLD_BY, description="the probe has arrived")
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert (await gateway.query_usage(ACCOUNT, CARD)).used_kb == 1
