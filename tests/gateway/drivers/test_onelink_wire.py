from collections import Counter
from random import Random

import orjson
import pytest
from tests.gateway.onelink_carrier import ACCOUNT, CREDENTIAL, after_token, answer, onelink_driver
from tests.gateway.scripted_server import Exchange, always, http_answer, scripted_server
from tests.waiting import FakeClock

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.onelink_wire import TOKEN_PATH, OneLinkCall
from junhong_cmp.gateway.errors import (
    AuthRejected,
    BadResponse,
    GatewayError,
    Maintenance,
    Throttled,
    Transient,
)

CARD = CardRef(1, "89860012345678900017")


async def outcome_of(data: bytes, *, token_too: bool) -> GatewayError:
    respond = always(data) if token_too else after_token([data])
    async with scripted_server(respond) as server, onelink_driver(server.url, FakeClock()) as driver:
        with pytest.raises(GatewayError) as refused:
            await driver.query_usage(ACCOUNT, CARD)
    return refused.value


@pytest.mark.parametrize("token_too", [True, False])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (http_answer(b"", status="401 Unauthorized"), AuthRejected),
        (http_answer(b"", status="404 Not Found"), BadResponse),
        (http_answer(b"", status="429 Too Many Requests"), Throttled),
        (http_answer(b"", status="502 Bad Gateway"), Transient),
        (http_answer(b"", status="503 Service Unavailable", extra="Retry-After: 60\r\n"), Maintenance),
        (answer(status="12022", message="鉴权不通过"), AuthRejected),
        (answer(status="19999", message="调用过于频繁"), Throttled),
        (answer(status="12021", message="token 已过期"), AuthRejected),
    ],
)
async def test_what_goes_wrong_is_the_accounts_trouble_with_or_without_a_token(
    data: bytes, expected: type[GatewayError], *, token_too: bool
) -> None:
    error = await outcome_of(data, token_too=token_too)
    assert type(error) is expected
    assert CREDENTIAL.secret not in str(error)


async def test_a_refusal_with_http_status_400_is_not_read() -> None:
    error = await outcome_of(answer(status="11011").replace(b"200 OK", b"400 Bad Request"), token_too=False)
    assert type(error) is BadResponse


def test_a_call_does_not_show_its_card() -> None:
    assert CARD.iccid not in repr(OneLinkCall("/v5/x", {"iccid": CARD.iccid}))


async def test_no_damage_to_an_answer_brings_anything_but_a_gateway_error() -> None:
    whole = bytearray(
        orjson.dumps(
            {"status": "0", "message": "正确", "result": [{"dataAmount": "20480", "iccid": CARD.iccid}]}
        )
    )
    random = Random(7)

    async def damage(exchange: Exchange) -> None:
        if TOKEN_PATH.encode() in exchange.head:
            await exchange.send(answer({"token": "good"}))
            return
        body = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            body[random.randrange(len(body))] = random.randrange(256)
        await exchange.send(http_answer(bytes(body[: random.randint(len(body) - 3, len(body))])))

    outcomes: Counter[type] = Counter()
    async with scripted_server(damage) as server, onelink_driver(server.url, FakeClock()) as driver:
        for _ in range(300):
            try:
                outcomes[type(await driver.query_usage(ACCOUNT, CARD))] += 1
            except GatewayError as error:
                outcomes[type(error)] += 1
    assert outcomes.total() == 300
    assert outcomes[BadResponse] > 100
