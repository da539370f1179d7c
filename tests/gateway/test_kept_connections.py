"""Answers nobody asked for, on connections that are kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from tests.gateway.clients import SHORT
from tests.gateway.scripted_server import Exchange, json_answer, scripted_server
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
