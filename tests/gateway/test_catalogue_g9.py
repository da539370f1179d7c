"""G9: a change whose answer was lost is asked about before it is sent again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis
from tests.gateway.clients import ACCOUNT, CREDENTIAL, SHORT, gateway_for
from tests.gateway.scripted_server import Exchange, scripted_server
from yarl import URL

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers import generic
from junhong_cmp.gateway.errors import AlreadyDone, CardResting, Transient
from junhong_cmp.gateway.limits.change_gap import RedisChangeGap
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.tuning import GatewayTuning


@dataclass
class Line:
    """A line to a carrier on which single answers, or requests, can be lost."""

    url: str = ""
    changes: list[Exchange] = field(default_factory=list)
    lose_answers: bool = False
    lose_requests: bool = False


@asynccontextmanager
async def line_to(carrier: URL) -> AsyncIterator[Line]:
    line = Line()

    async def relay(exchange: Exchange) -> None:
        is_change = exchange.head.split()[1].decode() in {generic.STOP_PATH, generic.RESUME_PATH}
        if is_change:
            line.changes.append(exchange)
        if is_change and line.lose_requests:
            exchange.reset()
            return
        reader, writer = await asyncio.open_connection(carrier.host, carrier.port)
        head = exchange.head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        writer.write(head + exchange.body)
        answer = await reader.read()
        writer.close()
        if is_change and line.lose_answers:
            exchange.reset()
        else:
            await exchange.send(answer)
            exchange.writer.close()

    async with scripted_server(relay) as server:
        line.url = server.url
        yield line


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    carrier = CarrierSimulator(SimulatorConfig(credential=CREDENTIAL))
    await carrier.start()
    async with line_to(URL(carrier.url)) as line:
        yield line
    await carrier.stop()


@pytest.fixture
def card() -> CardRef:
    """A card that runs."""
    book = CardBook(seed=0, unknown_rate=0, operation_delay=timedelta(0))
    numbers = (f"8986001234567{number:07d}" for number in range(100))
    return CardRef(1, next(iccid for iccid in numbers if book.status(iccid, datetime.now(UTC)) == "active"))


async def test_the_answer_of_a_stop_is_lost(line: Line, card: CardRef) -> None:
    line.lose_answers = True
    async with gateway_for(line.url) as gateway:
        with pytest.raises(Transient) as caught:
            await gateway.stop(ACCOUNT, card, "op-1")
        assert caught.value.maybe_executed is True
        assert len(line.changes) == 1, "nobody sends it again by himself"
        assert (await gateway.query_operation(ACCOUNT, card, "op-1")).state is OperationState.DONE
        assert (await gateway.query_status(ACCOUNT, card)).status == "suspended"
        line.lose_answers = False
        again = await gateway.stop(ACCOUNT, card, "op-1")
        assert again.state is OperationState.DONE, "the same request is the same operation"
        with pytest.raises(AlreadyDone):
            await gateway.stop(ACCOUNT, card, "op-2")


async def test_the_request_of_a_stop_is_lost(line: Line, card: CardRef) -> None:
    line.lose_requests = True
    async with gateway_for(line.url) as gateway:
        with pytest.raises(Transient) as caught:
            await gateway.stop(ACCOUNT, card, "op-1")
        assert caught.value.maybe_executed is True, "from here it looks like a lost answer"
        assert (await gateway.query_operation(ACCOUNT, card, "op-1")).state is OperationState.UNKNOWN
        assert (await gateway.query_status(ACCOUNT, card)).status == "active"
        line.lose_requests = False
        assert (await gateway.stop(ACCOUNT, card, "op-1")).state is OperationState.DONE


async def test_a_card_whose_change_may_have_been_made_rests(line: Line, card: CardRef, redis: Redis) -> None:
    account = ACCOUNT._replace(change_rest=timedelta(minutes=3))
    line.lose_answers = True
    async with gateway_for(line.url, GatewayTuning(change_gap=RedisChangeGap(redis))) as gateway:
        with pytest.raises(Transient):
            await gateway.stop(account, card, "op-1")
        with pytest.raises(CardResting) as caught:
            await gateway.resume(account, card, "op-2")
        assert caught.value.wait > timedelta(minutes=2)
        assert len(line.changes) == 1
        await gateway.query_operation(account, card, "op-1")


async def test_a_card_nothing_was_sent_for_does_not_rest(card: CardRef, redis: Redis) -> None:
    account = ACCOUNT._replace(change_rest=timedelta(minutes=3))
    tuning = GatewayTuning(timeouts=SHORT, change_gap=RedisChangeGap(redis))
    async with gateway_for("http://127.0.0.1:1", tuning) as gateway:
        for _ in range(2):
            with pytest.raises(Transient) as caught:
                await gateway.stop(account, card, "op-1")
            assert caught.value.maybe_executed is False
