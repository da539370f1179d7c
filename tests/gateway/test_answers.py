import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from junhong_cmp.cards.usage import (
    BillingTerms,
    UsageState,
    apply_reading,
    billing_cycle,
    previous_cycle,
)
from junhong_cmp.gateway.answers import (
    card_page,
    operation_answer,
    realname_answer,
    same_card,
    session_answer,
    status_answer,
    usage_answer,
)
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import BadResponse, WrongCard
from junhong_cmp.gateway.json_body import decode_object
from junhong_cmp.gateway.operations import OperationState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CARD = CardRef(1, "89860012345678901234")
AT = "2026-03-01T19:59:00+08:00"
USAGE: dict[str, object] = {"iccid": CARD.iccid, "used": 20, "unit": "MB", "reading_at": AT}
STATUS: dict[str, object] = {"iccid": CARD.iccid, "status": "active", "raw_status": "2", "observed_at": AT}
REALNAME: dict[str, object] = {"iccid": CARD.iccid, "real_name": "verified", "observed_at": AT}
SESSION: dict[str, object] = {
    "iccid": CARD.iccid,
    "online": True,
    "ip": "10.1.2.3",
    "since": AT,
    "observed_at": AT,
}
OPERATION: dict[str, object] = {
    "iccid": CARD.iccid,
    "request_id": "op-1",
    "state": "done",
    "observed_at": AT,
}
Read = Callable[[dict[str, object]], object]
READERS: dict[str, tuple[Read, dict[str, object]]] = {
    "usage": (lambda fields: usage_answer(fields, CARD, default_unit="KB", now=NOW), USAGE),
    "status": (lambda fields: status_answer(fields, CARD, now=NOW), STATUS),
    "realname": (lambda fields: realname_answer(fields, CARD, now=NOW), REALNAME),
    "session": (lambda fields: session_answer(fields, CARD, now=NOW), SESSION),
    "operation": (lambda fields: operation_answer(fields, CARD, "op-1", now=NOW), OPERATION),
}
each_reader = pytest.mark.parametrize(("read", "good"), READERS.values(), ids=READERS)


def test_a_usage_answer_is_in_kb_and_utc() -> None:
    answer = usage_answer(USAGE, CARD, default_unit="KB", now=NOW)
    assert (answer.iccid, answer.used_kb) == (CARD.iccid, 20_480)
    assert answer.reading_at == datetime(2026, 3, 1, 11, 59, tzinfo=UTC)
    assert answer.reading_at.tzinfo is UTC


def test_a_status_without_a_word_of_ours_is_unknown_and_keeps_its_own() -> None:
    assert status_answer(STATUS, CARD, now=NOW).raw == "2"
    strange = status_answer({**STATUS, "status": "retired", "raw_status": None}, CARD, now=NOW)
    assert (strange.status, strange.raw) == ("unknown", "retired")
    assert realname_answer({**REALNAME, "real_name": "maybe"}, CARD, now=NOW).status == "unknown"


def test_an_operation_answer_is_about_the_request() -> None:
    assert operation_answer(OPERATION, CARD, "op-1", now=NOW).state is OperationState.DONE
    with pytest.raises(WrongCard):
        operation_answer(OPERATION, CARD, "op-2", now=NOW)
    with pytest.raises(BadResponse):
        operation_answer({**OPERATION, "state": "perhaps"}, CARD, "op-1", now=NOW)


@each_reader
@pytest.mark.parametrize("other", ["89860012345678901235", "8986001234567890124", "8986001234567890123F4"])
def test_another_cards_answer_is_refused(read: Read, good: dict[str, object], other: str) -> None:
    with pytest.raises(WrongCard):
        read({**good, "iccid": other})


@each_reader
def test_a_missing_field_is_refused(read: Read, good: dict[str, object]) -> None:
    optional = {"unit", "raw_status", "ip", "since"}
    for name in good.keys() - optional:
        with pytest.raises(BadResponse):
            read({key: value for key, value in good.items() if key != name})
    for name in good.keys() & optional:
        read({key: value for key, value in good.items() if key != name})


@each_reader
@pytest.mark.parametrize(
    "moment",
    [
        "2026-03-01T12:05:01Z",
        "9999-12-31T23:59:59-12:00",
        "2026-03-01T11:00:00",
        "0001-01-01T00:00:00+14:00",
        "yesterday",
        1_772_366_340,
        "2026-13-01T00:00:00Z",
    ],
)
def test_an_impossible_instant_is_refused(read: Read, good: dict[str, object], moment: object) -> None:
    name = "reading_at" if "reading_at" in good else "observed_at"
    with pytest.raises(BadResponse):
        read({**good, name: moment})


@given(
    moment=st.datetimes(timezones=st.timezones()),
    zone=st.sampled_from(["Pacific/Kiritimati", "America/Adak", "Asia/Shanghai"]),
)
@example(moment=datetime(1, 1, 1, tzinfo=UTC), zone="America/Adak")
@example(moment=datetime(1, 1, 1, 9, tzinfo=UTC), zone="Asia/Shanghai")
def test_whatever_instant_is_accepted_belongs_to_a_billing_cycle(moment: datetime, zone: str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    try:
        answer = usage_answer(
            {"iccid": CARD.iccid, "used": 1, "reading_at": moment.isoformat()},
            CARD,
            default_unit="KB",
            now=now,
        )
    except BadResponse:
        return
    terms = BillingTerms(31, ZoneInfo(zone))
    cycle = billing_cycle(answer.reading_at, terms.billing_day, terms.tz)
    assert previous_cycle(cycle, terms) < cycle
    apply_reading(UsageState(), answer.used_kb, answer.reading_at, terms)


def test_a_clock_up_to_five_minutes_ahead_is_tolerated() -> None:
    usage_answer({**USAGE, "reading_at": "2026-03-01T12:05:00Z"}, CARD, default_unit="KB", now=NOW)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("8986001234567890123", "89860012345678901234", True),
        ("8986001234567890123F", "8986001234567890123", True),
        ("89860012345678901234", "89860012345678901235", False),
        ("8986001234567890123", "8986001234567890124", False),
        ("898600123456789012", "8986001234567890123", False),
        ("", "8986001234567890123", False),
    ],
)
def test_the_two_forms_of_an_iccid_are_one_card(one: str, other: str, same: bool) -> None:  # noqa: FBT001 - a column of the table
    assert same_card(one, other) is same
    assert same_card(other, one) is same


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@each_reader
@settings(max_examples=60)
@given(data=st.data())
def test_hostile_fields_never_crash(read: Read, good: dict[str, object], data: st.DataObject) -> None:
    spoiled = {name: data.draw(st.just(value) | json_values, label=name) for name, value in good.items()}
    with suppress(BadResponse):
        read(decode_object(json.dumps(spoiled).encode()))


@each_reader
@given(body=st.binary(max_size=200))
def test_hostile_bytes_never_crash(read: Read, good: dict[str, object], body: bytes) -> None:
    with suppress(BadResponse):
        read(decode_object(body))


@each_reader
@settings(max_examples=60)
@given(data=st.data())
def test_mutated_answers_never_crash(read: Read, good: dict[str, object], data: st.DataObject) -> None:
    body = bytearray(orjson.dumps(good))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadResponse):
        read(decode_object(bytes(body)))


def test_a_session_may_be_told_without_address_and_beginning() -> None:
    whole = session_answer(SESSION, CARD, now=NOW)
    assert (whole.online, whole.ip) == (True, "10.1.2.3")
    assert whole.since == datetime(2026, 3, 1, 11, 59, tzinfo=UTC)
    bare = session_answer({**SESSION, "online": False, "ip": None, "since": None}, CARD, now=NOW)
    assert (bare.online, bare.ip, bare.since) == (False, None, None)
    assert session_answer({**SESSION, "ip": "2001:DB8::1"}, CARD, now=NOW).ip == "2001:db8::1"


@pytest.mark.parametrize(
    "change",
    [
        {"online": 1},
        {"online": "true"},
        {"online": None},
        {"ip": "10.1.2.300"},
        {"ip": "gw.example.com"},
        {"ip": 10},
        {"since": "yesterday"},
        {"since": "2026-03-01T19:59:00"},
    ],
)
def test_a_session_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BadResponse):
        session_answer({**SESSION, **change}, CARD, now=NOW)


LISTED: dict[str, object] = {
    "iccid": "898604b7192270274525",
    "msisdn": "1440012345678",
    "status": "active",
    "raw_status": "2",
}


def test_a_page_of_cards_is_told_in_our_words() -> None:
    page = card_page({"items": [LISTED, {"iccid": CARD.iccid, "status": "lost"}], "next_cursor": "page 2"})
    assert page.next_cursor == "page 2"
    first, second = page.cards
    assert (first.iccid, first.msisdn, first.status) == ("898604B7192270274525", "1440012345678", "active")
    assert (second.msisdn, second.raw_status, second.status) == (None, None, "unknown")
    assert card_page({"items": []}).next_cursor is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"items": {}},
        {"items": [1]},
        {"items": [{}]},
        {"items": [{"iccid": "8986"}]},
        {"items": [{"iccid": "8986001234567890123X"}]},
        {"items": [{**LISTED, "msisdn": 144}]},
        {"items": [{**LISTED, "status": ["active"]}]},
        {"items": [], "next_cursor": 2},
        {"items": [], "next_cursor": ""},
        {"items": [], "next_cursor": "x" * 129},
    ],
)
def test_a_page_with_anything_wrong_is_refused_as_a_whole(fields: dict[str, object]) -> None:
    """A list with holes would make orphans of cards that are there."""
    with pytest.raises(BadResponse):
        card_page(fields)
