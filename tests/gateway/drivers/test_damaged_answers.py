"""Answers damaged on their way: each ends as an answer or as a named error, nothing else."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.gateway.carrier_rig import CREDENTIALS, account_of, asking
from tests.gateway.scripted_server import Exchange, Respond, http_answer, scripted_server

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulators.ctcc_methods import access_number_of
from junhong_cmp.gateway.simulators.dialect import Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.table import SIMULATORS

CARDS: Final = {
    "unicom": CardRef(1, "89860112345678900015"),
    "ctcc": CardRef(1, "8986031234567890001", msisdn=access_number_of("8986031234567890001")),
}
ROUNDS: Final = 60
Damage = Callable[[bytes, random.Random], bytes]


def cut(body: bytes, chance: random.Random) -> bytes:
    return body[: chance.randrange(len(body))]


def without_a_piece(body: bytes, chance: random.Random) -> bytes:
    begin = chance.randrange(len(body))
    return body[:begin] + body[begin + chance.randrange(1, 30) :]


def with_other_bytes(body: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(body)
    for _ in range(chance.randrange(1, 8)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def with_a_piece_twice(body: bytes, chance: random.Random) -> bytes:
    begin = chance.randrange(len(body))
    return body[:begin] + body[begin : begin + chance.randrange(1, 60)] + body[begin:]


def as_another_text(body: bytes, chance: random.Random) -> bytes:
    return body.decode().encode(chance.choice(["gb18030", "utf-16", "utf-8-sig"]))


def damaging(driver: str, damage: Damage) -> Respond:
    """Answer as the simulated carrier does, with each answer damaged in another way."""
    book = CardBook(seed=7, unknown_rate=0.0, operation_delay=timedelta(0))
    dialect = SIMULATORS[driver](SimulatorParts(book, CREDENTIALS[driver]))
    chance = random.Random(f"{driver} {damage.__name__}")

    async def respond(exchange: Exchange) -> None:
        method, target, _ = exchange.head.split(b"\r\n")[0].decode().split(" ")
        address = urlsplit(target)
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        now = datetime.now(UTC)
        asked = dialect.admit(Request(method, address.path, query, {}, exchange.body), now)
        reply = asked if isinstance(asked, Reply) else dialect.answer(asked, now)
        assert reply.status == 200
        await exchange.send(http_answer(damage(reply.body, chance)))

    return respond


@pytest.mark.parametrize(
    ("driver", "call"),
    [
        ("unicom", "query_usage"),
        ("unicom", "query_status"),
        ("unicom", "query_realname"),
        ("unicom", "stop"),
        ("ctcc", "query_usage"),
        ("ctcc", "query_status"),
        ("ctcc", "query_realname"),
        ("ctcc", "query_session"),
        ("ctcc", "stop"),
    ],
)
@pytest.mark.parametrize(
    "damage", [cut, without_a_piece, with_other_bytes, with_a_piece_twice, as_another_text]
)
async def test_a_damaged_answer_is_an_answer_about_the_card_or_a_named_error(
    driver: str, call: str, damage: Damage
) -> None:
    card = CARDS[driver]
    arguments = (card, "request-1") if call == "stop" else (card,)
    outcomes: list[object] = []
    async with scripted_server(damaging(driver, damage)) as server, asking(driver, server.url) as calls:
        for _ in range(ROUNDS):
            try:
                outcomes.append(await getattr(calls, call)(account_of(driver), *arguments))
            except GatewayError as error:
                outcomes.append(error)
    answers = [outcome for outcome in outcomes if not isinstance(outcome, GatewayError)]
    assert len(answers) < ROUNDS or damage is as_another_text
    for answer in answers:
        assert getattr(answer, "iccid", None) == card.iccid
        assert getattr(answer, "used_kb", 0) >= 0
