import orjson
import pytest
from tests.gateway.scripted_server import Exchange, Respond, always, http_answer, json_answer, scripted_server

from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, Transient, WrongCard
from junhong_cmp.gateway.http import open_http_gateway
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.verifier import RequestVerifier

CARD = CardRef(1, "89860012345678900017", msisdn="1440012345678")
GOOD = {"iccid": CARD.iccid, "used": 1, "unit": "KB", "reading_at": "2026-01-01T00:00:00Z"}


async def outcome_of(
    respond: Respond, credential: Credential, account: GatewayAccount, *, call: str = "query_usage"
) -> tuple[object, list[Exchange]]:
    async with scripted_server(respond) as server:
        gateway = open_http_gateway(
            base_url=f"{server.url}/base/", credentials={}, default_credential=credential, allow_http=True
        )
        await gateway.open()
        arguments = (account, CARD) if call.startswith("query_u") else (account, CARD, "op-1")
        try:
            return await getattr(gateway, call)(*arguments), server.exchanges
        except GatewayError as error:
            return error, server.exchanges
        finally:
            await gateway.close()


async def test_the_question_is_signed_and_names_account_and_card(
    credential: Credential, account: GatewayAccount
) -> None:
    _, exchanges = await outcome_of(always(json_answer(GOOD)), credential, account)
    exchange = exchanges[0]
    start, *lines = exchange.head.decode().strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert start == "POST /base/v1/usage/query HTTP/1.1"
    assert orjson.loads(exchange.body) == {
        "account": account.code,
        "iccid": CARD.iccid,
        "msisdn": CARD.msisdn,
    }
    RequestVerifier({credential.key_id: credential}).verify(
        headers,
        path="/v1/usage/query",
        body=exchange.body,
        now_s=int(headers["X-Junhong-Timestamp"]),
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (http_answer(b"<html>login</html>", content_type="text/html"), BadResponse),
        (http_answer(b"<html>"), BadResponse),
        (http_answer(b"\xef\xbb\xbf{}"), BadResponse),
        (json_answer({**GOOD, "iccid": "89860012345678900018"}), WrongCard),
        (json_answer(GOOD, status="204 No Content"), GatewayError),
        (json_answer({"error": {"code": "card_unknown"}}, status="404 Not Found"), CardUnknown),
        (json_answer({"detail": "Not Found"}, status="404 Not Found"), BadResponse),
        (http_answer(b"", status="503 Service Unavailable"), Transient),
    ],
)
async def test_each_answer_leads_to_what_is_to_be_done(
    answer: bytes, expected: type[Exception], credential: Credential, account: GatewayAccount
) -> None:
    error, _ = await outcome_of(always(answer), credential, account)
    assert isinstance(error, expected)


@pytest.mark.parametrize(("call", "sent"), [("query_operation", 2), ("stop", 1), ("resume", 1)])
async def test_only_questions_are_asked_twice(
    call: str, sent: int, credential: Credential, account: GatewayAccount
) -> None:
    async def lose_the_reply(exchange: Exchange) -> None:
        exchange.reset()

    error, exchanges = await outcome_of(lose_the_reply, credential, account, call=call)
    assert isinstance(error, Transient)
    assert error.maybe_executed
    assert len(exchanges) == sent
    nonces = {
        next(line for line in exchange.head.split(b"\r\n") if b"Nonce" in line) for exchange in exchanges
    }
    assert len(nonces) == sent


async def test_server_errors_are_not_asked_again(credential: Credential, account: GatewayAccount) -> None:
    _, exchanges = await outcome_of(
        always(http_answer(b"", status="500 Internal Server Error")), credential, account
    )
    assert len(exchanges) == 1
