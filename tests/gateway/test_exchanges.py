"""Requests and answers over kept connections, and answers nobody asked for on them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from tests.gateway.clients import SHORT
from tests.gateway.scripted_server import Exchange, http_answer, json_answer, scripted_server
from tests.waiting import wait_until
from yarl import URL

from junhong_cmp.gateway.transport import HttpTransport


@asynccontextmanager
async def transport() -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(SHORT)
    await transport.open()
    try:
        yield transport
    finally:
        await transport.close()


async def ask(client: HttpTransport, url: str, question: int, *, resend: bool) -> object:
    answer = await client.post(URL(url), b"%d" % question, dict, resend=resend)
    return orjson.loads(answer.body)


async def test_an_answer_that_comes_twice_is_not_taken_for_the_next_ones() -> None:
    """Without the check every answer from the second on would be the one before it."""
    late: list[asyncio.Task[None]] = []

    async def answer_twice(exchange: Exchange) -> None:
        answer = json_answer({"question": int(exchange.body)})
        await exchange.send(answer)

        async def again() -> None:
            await asyncio.sleep(0.01)
            await exchange.send(answer)

        late.append(asyncio.create_task(again()))

    async with scripted_server(answer_twice) as server, transport() as client:
        for question in range(10):
            told = await ask(client, server.url, question, resend=question % 2 == 0)
            assert told == {"question": question}
            await late[-1]
            await asyncio.sleep(0.01)
        assert len(server.exchanges) == 10, "nothing is sent over such a connection, so nothing twice"
        assert server.connections == 10


async def test_many_such_connections_are_all_passed_over() -> None:
    gate = asyncio.Event()
    writers: list[Exchange] = []

    async def answer_at_once(exchange: Exchange) -> None:
        writers.append(exchange)
        await gate.wait()
        await exchange.send(json_answer({"question": int(exchange.body)}))

    async with scripted_server(answer_at_once) as server, transport() as client:
        first = [asyncio.create_task(ask(client, server.url, number, resend=True)) for number in range(8)]
        await wait_until(lambda: len(writers) == 8, description="eight connections are in use")
        gate.set()
        await asyncio.gather(*first)
        for exchange in writers:
            await exchange.send(json_answer({"question": -1}))
        await asyncio.sleep(0.05)
        assert await ask(client, server.url, 99, resend=False) == {"question": 99}
        assert server.connections == 9
        assert await ask(client, server.url, 100, resend=False) == {"question": 100}
        assert server.connections == 9, "a good connection is kept"


async def test_what_comes_before_the_answer_is_passed_over() -> None:
    async def hint_first(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        await exchange.send(json_answer({"question": int(exchange.body)}))

    async with scripted_server(hint_first) as server, transport() as client:
        for question in range(3):
            assert await ask(client, server.url, question, resend=False) == {"question": question}
        assert server.connections == 1


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\rb", "a\0b"])
async def test_a_header_with_a_line_end_in_it_is_not_sent(value: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(json_answer({"question": 0}))

    async with scripted_server(answer) as server, transport() as client:
        with pytest.raises(ValueError, match="line end"):
            await client.post(URL(server.url), b"0", lambda: {"X-Token": value}, resend=True)
        assert not server.exchanges
        assert await ask(client, server.url, 0, resend=False) == {"question": 0}
        assert server.connections == 1, "no connection is made for it"


async def test_content_types_are_compared_without_their_parameters() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(http_answer(b"{}", content_type="Application/JSON ; charset=utf-8"))

    async with scripted_server(answer) as server, transport() as client:
        told = await client.post(URL(server.url), b"0", dict, resend=True)
        assert told.content_type == "application/json"
