"""G10: what a carrier says of a card it has closed or never had, and what only looks like it."""

from datetime import UTC, datetime

import pytest
from tests.gateway.clients import ACCOUNT, CARD, gateway_for
from tests.gateway.scripted_server import always, http_answer, json_answer, scripted_server

from junhong_cmp.cards.model import CardStatus
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, Transient

HTML = "text/html"
UNKNOWN = {"error": {"code": "card_unknown", "message": "卡号不存在"}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (json_answer(UNKNOWN, status="404 Not Found"), CardUnknown),
        (json_answer(UNKNOWN, status="400 Bad Request"), CardUnknown),
        (json_answer(UNKNOWN, status="410 Gone"), CardUnknown),
        (json_answer({"error": {"code": "no_such_thing"}}, status="404 Not Found"), BadResponse),
        (json_answer({"error": "card_unknown"}, status="404 Not Found"), BadResponse),
        (http_answer(b"<h1>Not Found</h1>", status="404 Not Found", content_type=HTML), BadResponse),
        (http_answer(b"", status="410 Gone", content_type=HTML), BadResponse),
        (http_answer(b"no card", status="500 Oh", content_type=HTML), Transient),
        (json_answer({"iccid": CARD.iccid}), BadResponse),
    ],
    ids=range(9),
)
async def test_only_the_carriers_own_word_makes_a_card_unknown(
    answer: bytes, expected: type[GatewayError]
) -> None:
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        with pytest.raises(GatewayError) as caught:
            await gateway.query_status(ACCOUNT, CARD)
    assert type(caught.value) is expected


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("pre_cancelled", CardStatus.PRE_CANCELLED),
        ("cancelled", CardStatus.CANCELLED),
        ("CANCELLED", CardStatus.UNKNOWN),
        ("closed", CardStatus.UNKNOWN),
        ("已销户", CardStatus.UNKNOWN),
    ],
)
async def test_a_closed_card_is_told_in_the_words_of_the_contract(said: str, status: CardStatus) -> None:
    now = datetime.now(UTC).isoformat()
    answer = json_answer({"iccid": CARD.iccid, "status": said, "raw_status": "9 销户", "observed_at": now})
    async with scripted_server(always(answer)) as server, gateway_for(server.url) as gateway:
        told = await gateway.query_status(ACCOUNT, CARD)
    assert (told.raw, CardStatus(told.status)) == ("9 销户", status)
