from datetime import UTC, datetime

import pytest

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers import ctcc_answers as answers
from junhong_cmp.gateway.errors import BadResponse

CARD = CardRef(1, "8986031234567890001", msisdn="1410028214051")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "used_kb"),
    [
        ("0.00MB", 0),
        ("0MB", 0),
        ("12.34MB", 12636),
        ("1.00GB", 1024 * 1024),
        ("512KB", 512),
        ("999999999.99MB", 1023999999989),
    ],
)
def test_usage_is_whole_kb(written: str, used_kb: int) -> None:
    assert answers.used_kb({"TOTAL_BYTES_CNT": written}) == used_kb


@pytest.mark.parametrize(
    "written",
    ["12.34TB", "NaNMB", "-1MB", "12.34", "MB", "1e3MB", "12,34MB", "1\uff12MB", "12.34mb", "", None],
)
def test_what_is_not_the_platforms_way_of_writing_usage_is_refused(written: object) -> None:
    with pytest.raises(BadResponse):
        answers.used_kb({"TOTAL_BYTES_CNT": written})


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["1"], ("1 可激活", "ready")),
        (["2"], ("2 测试激活", "testing")),
        (["3"], ("3 测试去激活", "testing")),
        (["4"], ("4 在用", "active")),
        (["5"], ("5 停机", "suspended")),
        (["6"], ("6 运营商管理状态", "unknown")),
        (["7"], ("7 拆机", "cancelled")),
        (["42"], ("42", "unknown")),
        ([4], ("4 在用", "active")),
        (["6", "5"], ("5 停机", "suspended")),
        (["6", "6"], ("6 运营商管理状态", "unknown")),
    ],
)
def test_every_main_state_has_its_word(codes: list[object], expected: tuple[str, str]) -> None:
    products = [{"productMainStatusCd": code, "productMainStatusName": "别的字"} for code in codes]
    assert answers.status_of({"productInfo": products}) == expected


@pytest.mark.parametrize("products", [None, [], {}, ["4"], [{}], [{"productMainStatusCd": True}]])
def test_an_answer_without_a_state_is_refused(products: object) -> None:
    with pytest.raises(BadResponse):
        answers.status_of({"productInfo": products})


@pytest.mark.parametrize(
    ("certificate", "registered"), [("3201**********0011", True), ("null", False), ("", False), (None, False)]
)
def test_a_registered_person_is_seen_but_not_read(certificate: object, *, registered: bool) -> None:
    assert answers.has_real_name({"RESULT": {"certNumber": certificate}}) is registered


ONLINE = {"result": "0", "framedIpAddress": "10.11.9.102", "startTime": "2026-03-01 08:00:00"}


def test_a_session_has_an_address_and_a_beginning_in_carrier_time() -> None:
    session = answers.session_of(dict(ONLINE), CARD, NOW)
    assert (session.iccid, session.online, session.ip, session.at) == (CARD.iccid, True, "10.11.9.102", NOW)
    assert session.since == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "fields",
    [{"result": "-1"}, {**ONLINE, "result": "-1"}, {"result": "-1", "framedIpAddress": "", "startTime": ""}],
)
def test_a_card_off_the_network_has_neither(fields: dict[str, object]) -> None:
    session = answers.session_of(fields, CARD, NOW)
    assert (session.online, session.ip, session.since) == (False, None, None)


def test_a_session_from_the_future_begins_now() -> None:
    session = answers.session_of({**ONLINE, "startTime": "2026-03-01 20:00:09"}, CARD, NOW)
    assert session.since == NOW


@pytest.mark.parametrize(
    "change",
    [{"result": "2"}, {"result": None}, {"framedIpAddress": "x"}, {"startTime": "gestern"}, {"startTime": 5}],
)
def test_an_impossible_session_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BadResponse):
        answers.session_of({**ONLINE, **change}, CARD, NOW)


def test_a_page_of_cards_leads_to_the_next_until_one_is_empty() -> None:
    item = {"iccid": "898603123456789000b", "accNumber": "1410028214051", "simStatus": ["5"]}
    page = answers.card_page({"pageIndex": "3", "simList": [item]}, 3)
    assert page.next_cursor == "4"
    card = page.cards[0]
    assert (card.iccid, card.msisdn, card.raw_status, card.status) == (
        "898603123456789000B",
        "1410028214051",
        "5 停机",
        "suspended",
    )
    assert answers.card_page({"pageIndex": 4, "simList": []}, 4).next_cursor is None


@pytest.mark.parametrize("states", [{}, {"simStatus": None}, {"simStatus": []}])
def test_a_card_may_be_listed_without_a_state_or_a_number(states: dict[str, object]) -> None:
    item = {"iccid": "8986031234567890001", **states}
    card = answers.card_page({"pageIndex": "1", "simList": [item]}, 1).cards[0]
    assert (card.msisdn, card.raw_status, card.status) == (None, None, "unknown")


@pytest.mark.parametrize(
    "description",
    [
        {"pageIndex": "1"},
        {"simList": []},
        {"pageIndex": "2", "simList": []},
        {"pageIndex": "1", "simList": ["x"]},
        {"pageIndex": "1", "simList": [{"iccid": "8986", "simStatus": ["5"]}]},
        {"pageIndex": "1", "simList": [{"iccid": "8986031234567890001", "simStatus": [True]}]},
    ],
)
def test_a_page_that_is_none_is_refused(description: dict[str, object]) -> None:
    with pytest.raises(BadResponse):
        answers.card_page(description, 1)
