from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers.unicom_answers import (
    read_data,
    realname_of,
    split_terminals,
    status_of,
    usage_of,
)
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, WrongCard

CARDS = [CardRef(number, f"898601{number:014d}") for number in range(1, 4)]
CARD = CARDS[0]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
DATA = {"messageId": "m-1", "resultCode": "0000", "terminals": []}
GOOD = {"status": "0000", "message": "ok", "data": DATA}


def read_usage(terminal: Mapping[str, object], card: CardRef) -> UsageAnswer:
    return usage_of(terminal, card, NOW)


def terminal(card: CardRef, used: object = "1.000") -> dict[str, object]:
    return {"iccid": card.iccid, "monthToDateDataUsage": used}


def with_data(**change: object) -> bytes:
    return orjson.dumps({**GOOD, "data": {**DATA, **change}})


def test_a_successful_answer_is_its_data() -> None:
    assert read_data(orjson.dumps(GOOD), "m-1", changing=False)["terminals"] == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", BadResponse),
        (b"<html>", BadResponse),
        ("状态".encode("gb18030"), BadResponse),
        (b"{}", BadResponse),
        (b'{"status":"0000"}', BadResponse),
        (b'{"status":"0000","data":[]}', BadResponse),
        (b'{"status":"0000","data":{}}', BadResponse),
        (with_data(messageId="m-2"), WrongCard),
        (with_data(messageId=None), BadResponse),
        (with_data(resultCode=None), BadResponse),
        (with_data(resultCode="1074", message="ICCID不存在"), CardUnknown),
        (orjson.dumps({"status": "9999", "message": "卡不存在"}), CardUnknown),
        (b'{"status":"0000","status":"0000"}', BadResponse),
        (b'{"status":NaN}', BadResponse),
    ],
)
def test_what_is_no_success_is_named(body: bytes, expected: type[GatewayError]) -> None:
    with pytest.raises(GatewayError) as refused:
        read_data(body, "m-1", changing=False)
    assert type(refused.value) is expected


def test_an_answer_is_split_to_its_cards_and_a_bad_one_fails_alone() -> None:
    data = {"terminals": [terminal(CARDS[1], "12.34TB"), terminal(CARDS[0], "0.5")]}
    results = split_terminals(data, CARDS, read_usage)
    assert results[1] == UsageAnswer(CARDS[0].iccid, 512, NOW)
    assert type(results[2]) is BadResponse
    assert type(results[3]) is CardUnknown


def test_a_card_answered_twice_is_not_believed() -> None:
    results = split_terminals({"terminals": [terminal(CARD), terminal(CARD, "2")]}, [CARD], read_usage)
    assert type(results[1]) is BadResponse


def test_a_card_nobody_asked_about_makes_no_missing_card_unknown() -> None:
    stranger = CardRef(9, "89860199999999999999")
    results = split_terminals({"terminals": [terminal(CARD), terminal(stranger)]}, CARDS, read_usage)
    assert [type(results[card.card_id]) for card in CARDS] == [UsageAnswer, WrongCard, WrongCard]
    with pytest.raises(WrongCard):
        split_terminals({"terminals": [terminal(stranger)]}, CARDS, read_usage)


def test_nobody_at_all_means_unknown_for_one_card_but_not_for_many() -> None:
    assert type(split_terminals({"terminals": []}, [CARD], read_usage)[1]) is CardUnknown
    assert {type(item) for item in split_terminals({"terminals": []}, CARDS, read_usage).values()} == {
        BadResponse
    }


@pytest.mark.parametrize("terminals", [None, {}, "x", [5], [{}], [{"iccid": 5.5}]])
def test_what_is_no_list_of_terminals_is_refused(terminals: object) -> None:
    with pytest.raises(BadResponse):
        split_terminals({"terminals": terminals}, CARDS, read_usage)


@given(st.permutations(range(3)), st.sets(st.integers(0, 2)))
def test_each_card_gets_its_own_answer_in_any_order(order: list[int], missing: set[int]) -> None:
    terminals = [terminal(CARDS[number], str(number)) for number in order if number not in missing]
    results = split_terminals({"terminals": terminals}, CARDS, read_usage)
    assert set(results) == {1, 2, 3}
    for number, card in enumerate(CARDS):
        answer = results[card.card_id]
        if number in missing:
            assert isinstance(answer, GatewayError)
        else:
            assert answer == UsageAnswer(card.iccid, number * 1024, NOW)


@pytest.mark.parametrize(
    ("used", "used_kb"),
    [("0", 0), ("0.000", 0), ("12.34", 12636), ("1024", 1048576), (5, 5120), (Decimal("0.001"), 1)],
)
def test_usage_is_mb_without_a_unit(used: object, used_kb: int) -> None:
    assert usage_of(terminal(CARD, used), CARD, NOW).used_kb == used_kb


@pytest.mark.parametrize(
    "used", [None, "", "NaN", "Infinity", "-1", "12.34TB", "1e3", "1,000", True, [], "9" * 30]
)
def test_what_is_no_usage_is_refused(used: object) -> None:
    with pytest.raises(BadResponse):
        usage_of(terminal(CARD, used), CARD, NOW)


@pytest.mark.parametrize(
    ("code", "raw", "status"),
    [
        ("0", "0 可测试", "testing"),
        ("1", "1 可激活", "ready"),
        ("2", "2 已激活", "active"),
        ("3", "3 已停用", "suspended"),
        ("4", "4 已失效", "pre_cancelled"),
        ("5", "5 已清除", "cancelled"),
        ("6", "6 已更换", "cancelled"),
        ("7", "7 库存", "inventory"),
        ("8", "8 开始", "inventory"),
        ("9", "9 预清除", "pre_cancelled"),
        ("10", "10", "unknown"),
        (2, "2 已激活", "active"),
    ],
)
def test_every_state_has_its_word(code: object, raw: str, status: str) -> None:
    answer = status_of({"simStatus": code}, CARD, NOW)
    assert (answer.raw, answer.status, answer.at) == (raw, status, NOW)


@pytest.mark.parametrize(
    ("code", "status"),
    [("0", "not_required"), ("1", "unverified"), ("2", "verified"), ("3", "verified"), ("4", "unknown")],
)
def test_every_real_name_state_has_its_word(code: str, status: str) -> None:
    assert realname_of({"realNameStatus": code}, CARD, NOW).status == status


@pytest.mark.parametrize("code", [None, "", "active", "9999", True, 2.5])
def test_what_is_no_code_is_refused(code: object) -> None:
    with pytest.raises(BadResponse):
        status_of({"simStatus": code}, CARD, NOW)
    with pytest.raises(BadResponse):
        realname_of({"realNameStatus": code}, CARD, NOW)
