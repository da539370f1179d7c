"""G4: whatever bytes come back, the caller gets a checked answer or one short, clean reason."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.clients import ACCOUNT, CARD, NEVER_OPENS, gateway_for
from tests.gateway.scripted_server import Exchange, always, http_answer, scripted_server

from junhong_cmp.gateway.client import UsageAnswer
from junhong_cmp.gateway.errors import BadResponse, GatewayError, Transient
from junhong_cmp.gateway.http import HttpGateway
from junhong_cmp.gateway.tuning import GatewayTuning

LONGEST_REASON = 300
GOOD = orjson.dumps(
    {"iccid": CARD.iccid, "used": 1, "unit": "KB", "reading_at": "2026-01-01T00:00:00Z", "name": "用量"}
)

CORPUS = {
    "empty": b"",
    "cut": GOOD[:-1],
    "two documents": GOOD + GOOD,
    "bom": b"\xef\xbb\xbf" + GOOD,
    "utf-16": GOOD.decode().encode("utf-16"),
    "gbk": GOOD.decode().encode("gbk"),
    "lone surrogate bytes": GOOD.replace("用量".encode(), b"\xed\xa0\x80"),
    "single quotes": GOOD.replace(b'"', b"'"),
    "repeated key": GOOD.replace(b'"used":1', b'"used":1,"used":2'),
    "repeated card": GOOD.replace(b'"used"', b'"iccid":"89860099999999999999","used"'),
    "nan": GOOD.replace(b":1", b":NaN", 1),
    "infinity": GOOD.replace(b":1", b":-Infinity", 1),
    "beyond a float": GOOD.replace(b":1", b":1e999", 1),
    "beyond a decimal": GOOD.replace(b":1", b":1e999999999999999999999", 1),
    "beyond an int": GOOD.replace(b":1", b":" + b"9" * 5000, 1),
    "deep list": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "deep and whole": b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a list": b"[" + GOOD + b"]",
    "null": b"null",
    "text": orjson.dumps(GOOD.decode()),
    "html": b"<html><body>502</body></html>",
    "terminal escapes": b"\x1b[2J\x1b]0;owned\x07\r\n2026-01-01 [error] forged",
    "card number in garbage": CARD.iccid.encode() + b" 13800138000",
}


@pytest.mark.parametrize("body", CORPUS.values(), ids=CORPUS)
async def test_a_malformed_answer_is_refused_with_a_clean_excerpt(body: bytes) -> None:
    async with scripted_server(always(http_answer(body))) as server, gateway_for(server.url) as gateway:
        with pytest.raises(BadResponse) as caught:
            await gateway.query_usage(ACCOUNT, CARD)
    check_reason(caught.value)


@pytest.mark.parametrize(
    "content_type",
    [
        "text/html",
        "text/plain; charset=utf-8",
        "application/xml",
        "application/jsonp",
        "",
        "application/json,x",
    ],
)
async def test_json_by_another_name_is_refused(content_type: str) -> None:
    answer = http_answer(GOOD, content_type=content_type)
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        with pytest.raises(BadResponse):
            await gateway.query_usage(ACCOUNT, CARD)


def check_reason(error: GatewayError) -> None:
    text = str(error)
    assert len(text) <= LONGEST_REASON
    assert text.isprintable()
    assert CARD.iccid not in text
    assert "13800138000" not in text


class Talker:
    """A talker answers every call with the bytes it was last given."""

    def __init__(self, runner: asyncio.Runner, gateway: HttpGateway) -> None:
        self._runner = runner
        self._gateway = gateway
        self.answer = b""

    def ask(self) -> UsageAnswer | GatewayError:
        return self._runner.run(self._ask())

    async def _ask(self) -> UsageAnswer | GatewayError:
        try:
            return await self._gateway.query_usage(ACCOUNT, CARD)
        except GatewayError as error:
            return error


@contextmanager
def talking() -> Iterator[tuple[Talker, Callable[[bytes], None]]]:
    """Keep a scripted carrier and a client in a loop that hypothesis can enter again and again."""
    said = [b""]

    async def say(exchange: Exchange) -> None:
        await exchange.send(said[0])
        exchange.writer.close()

    async def open_both(stack: AsyncExitStack) -> HttpGateway:
        server = await stack.enter_async_context(scripted_server(say))
        return await stack.enter_async_context(gateway_for(server.url, GatewayTuning(breaker=NEVER_OPENS)))

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        talker = Talker(runner, runner.run(open_both(stack)))
        try:
            yield talker, lambda data: said.__setitem__(0, data)
        finally:
            runner.run(stack.aclose())


def mutated(body: bytes) -> st.SearchStrategy[bytes]:
    """Return bodies that differ from a good one by a few bytes put over, in, or out."""

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        text = bytearray(body)
        for at, length, patch in edits:
            text[at : at + length] = patch
        return bytes(text)

    edit = st.tuples(st.integers(0, len(body)), st.integers(0, 4), st.binary(max_size=4))
    return st.lists(edit, min_size=1, max_size=3).map(apply)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
answers_of_the_contract = st.fixed_dictionaries(
    {"iccid": st.just(CARD.iccid) | json_values, "used": json_values, "reading_at": json_values},
    optional={"unit": st.sampled_from(["KB", "MB", "parsec"]) | json_values, "error": json_values},
)


def test_any_body_at_all_is_an_answer_or_a_reason() -> None:
    bodies = st.binary(max_size=200) | mutated(GOOD) | answers_of_the_contract.map(_dumps)
    with talking() as (talker, say):

        @settings(max_examples=300, deadline=None)
        @given(bodies, st.sampled_from(["200 OK", "429 Slow", "500 Oh", "404 No", "999 What"]))
        def check(body: bytes, status: str) -> None:
            say(http_answer(body, status=status, extra="Connection: close\r\n"))
            outcome = talker.ask()
            if isinstance(outcome, GatewayError):
                check_reason(outcome)
            else:
                assert status == "200 OK"
                assert outcome.iccid == CARD.iccid
                assert 0 <= outcome.used_kb <= 2**50
                assert outcome.reading_at <= datetime.now(UTC).replace(year=9999)

        check()


def test_any_bytes_at_all_instead_of_http_are_a_reason() -> None:
    with talking() as (talker, say):

        @settings(max_examples=200, deadline=None)
        @given(st.binary(max_size=300) | mutated(http_answer(GOOD)))
        def check(data: bytes) -> None:
            say(data)
            outcome = talker.ask()
            if isinstance(outcome, GatewayError):
                assert isinstance(outcome, BadResponse | Transient)
                check_reason(outcome)
            else:
                assert outcome.iccid == CARD.iccid

        check()


def _dumps(value: object) -> bytes:
    """Write JSON as Python does: with Infinity, and integers of any size."""
    return json.dumps(value).encode()
