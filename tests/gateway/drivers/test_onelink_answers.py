from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.onelink_carrier import ACCOUNT, START, after_token, answer, onelink_driver
from tests.gateway.scripted_server import http_answer, json_answer, scripted_server
from tests.waiting import FakeClock

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.onelink_answers import (
    check_card,
    only_item,
    session_answer,
    status_answer,
    token_of,
    usage_answer,
)
from junhong_cmp.gateway.errors import BadResponse, GatewayError, WrongCard
from junhong_cmp.gateway.sessions import SessionAnswer

CARD = CardRef(1, "89860012345678900017", msisdn="1440012345678")
OTHER = "89860012345678900117"
NOW = START


async def outcome_of(call: str, data: bytes) -> GatewayError:
    async with (
        scripted_server(after_token([data])) as server,
        onelink_driver(server.url, FakeClock(START)) as driver,
    ):
        with pytest.raises(GatewayError) as refused:
            await getattr(driver, call)(ACCOUNT, CARD)
    return refused.value


HOSTILE_USAGE: list[tuple[object, type[GatewayError]]] = [
    ({}, BadResponse),
    ({"dataAmount": None}, BadResponse),
    ({"dataAmount": ""}, BadResponse),
    ({"dataAmount": "很多"}, BadResponse),
    ({"dataAmount": "-1"}, BadResponse),
    ({"dataAmount": -1}, BadResponse),
    ({"dataAmount": True}, BadResponse),
    ({"dataAmount": "1e9"}, BadResponse),
    ({"dataAmount": "9" * 24}, BadResponse),
    ({"dataAmount": 2**63}, BadResponse),
    ({"dataAmount": ["1"]}, BadResponse),
    ({"dataAmount": "1", "iccid": OTHER}, WrongCard),
    ({"dataAmount": "1", "iccid": OTHER[:19]}, WrongCard),
    ({"dataAmount": "1", "msisdn": "1440012345679"}, WrongCard),
    ({"dataAmount": "1", "iccid": 7}, BadResponse),
]


@pytest.mark.parametrize(("item", "expected"), HOSTILE_USAGE)
async def test_a_hostile_usage_is_refused(item: object, expected: type[GatewayError]) -> None:
    assert type(await outcome_of("query_usage", answer(item))) is expected


@pytest.mark.parametrize(
    ("call", "item"),
    [
        ("query_status", {}),
        ("query_status", {"cardStatus": None}),
        ("query_status", {"cardStatus": " "}),
        ("query_status", {"cardStatus": 2}),
        ("query_status", {"cardStatus": "2\x00"}),
        ("query_status", {"cardStatus": "2" * 129}),
        ("query_realname", {}),
        ("query_realname", {"realNameStatus": 1}),
        ("query_session", {}),
        ("query_session", {"simSessionList": {}}),
        ("query_session", {"simSessionList": ["01"]}),
        ("query_session", {"simSessionList": [{"status": "02"}]}),
        ("query_session", {"simSessionList": [{"status": "01", "ip": "10.0.0.256"}]}),
        ("query_session", {"simSessionList": [{"status": "01", "createDate": "昨天"}]}),
        ("query_session", {"simSessionList": [{"status": "01", "createDate": "2026-03-10 12:36:00"}]}),
    ],
)
async def test_a_missing_or_wrong_field_is_refused(call: str, item: object) -> None:
    assert type(await outcome_of(call, answer(item))) is BadResponse


@pytest.mark.parametrize("call", ["query_usage", "query_status", "query_realname", "query_session"])
@pytest.mark.parametrize(
    "data",
    [
        answer(),
        answer({"cardStatus": "2"}, {"cardStatus": "2"}),
        answer("2"),
        json_answer({"status": "0", "message": "正确"}),
        json_answer({"status": "0", "result": {"cardStatus": "2"}}),
        json_answer([]),
        http_answer(b'{"status":"0","status":"12021","result":[]}'),
        http_answer(b"<html>login</html>", content_type="text/html"),
        http_answer(b""),
    ],
)
async def test_an_answer_of_another_form_is_none(call: str, data: bytes) -> None:
    assert type(await outcome_of(call, data)) is BadResponse


@pytest.mark.parametrize(
    ("amount", "used_kb"), [("0", 0), (" ", 0), ("20480", 20480), ("20480.99", 20480), (5, 5)]
)
def test_usage_is_in_kb_and_a_blank_is_none_yet(amount: object, used_kb: int) -> None:
    assert usage_answer({"dataAmount": amount}, CARD, NOW).used_kb == used_kb


@pytest.mark.parametrize(
    "item",
    [
        {"iccid": CARD.iccid},
        {"iccid": CARD.iccid[:19]},
        {"msisdn": CARD.msisdn},
        {"iccid": CARD.iccid, "msisdn": CARD.msisdn},
        {"iccid": f" {CARD.iccid} ", "msisdn": " "},
    ],
)
def test_the_cards_own_numbers_are_accepted(item: dict[str, object]) -> None:
    check_card(item, CARD, named=True)


def test_one_right_number_does_not_make_up_for_a_wrong_one() -> None:
    with pytest.raises(WrongCard):
        check_card({"iccid": CARD.iccid, "msisdn": "1440099999999"}, CARD)
    with pytest.raises(WrongCard):
        check_card({"iccid": OTHER, "msisdn": CARD.msisdn}, CARD)


def test_a_card_without_sessions_is_off() -> None:
    off = SessionAnswer(CARD.iccid, online=False, ip=None, since=None, at=NOW)
    assert session_answer({"simSessionList": []}, CARD, NOW) == off
    assert session_answer({"simSessionList": [{"status": "00", "ip": " "}]}, CARD, NOW) == off


def test_a_card_is_on_if_any_access_point_is() -> None:
    sessions = [
        {"apnId": "CMIOT", "status": "00", "ip": " ", "createDate": " "},
        {"apnId": "CMMTM", "status": "01", "ip": "10.1.2.3", "createDate": "2026-03-10 08:00:00"},
    ]
    answered = session_answer({"simSessionList": sessions}, CARD, NOW)
    assert (answered.online, answered.ip) == (True, "10.1.2.3")
    assert answered.since == datetime(2026, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ttl", "seconds"),
    [("3600", 3600), (120, 120), ("86400", 86400), ("86401", 3600), ("0", 3600), ("-5", 3600), ("²", 3600)],
)
def test_a_token_lives_as_long_as_it_says_or_an_hour(ttl: object, seconds: int) -> None:
    token = token_of({"token": "canary-token", "ttl": ttl})
    assert token.lifetime == timedelta(seconds=seconds)
    assert "canary" not in repr(token)


@pytest.mark.parametrize("token", [None, "", 7, "x\n", "x" * 1025])
def test_a_token_is_a_text(token: object) -> None:
    with pytest.raises(BadResponse):
        token_of({"token": token})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    ["iccid", "msisdn", "dataAmount", "cardStatus", "simSessionList", "token", "ttl", "result", "status"]
)


@given(st.dictionaries(_KEYS, _JSON))
def test_nothing_but_a_gateway_error_comes_of_any_answer(item: dict[str, object]) -> None:
    for read in (
        lambda: only_item(item),
        lambda: token_of(item),
        lambda: usage_answer(item, CARD, NOW),
        lambda: status_answer(item, CARD, NOW),
        lambda: session_answer(item, CARD, NOW),
    ):
        with suppress(GatewayError):
            read()
