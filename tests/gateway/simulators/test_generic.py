from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from junhong_cmp.gateway.drivers import generic
from junhong_cmp.gateway.signing import Credential, signed_headers
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulators.dialect import Question, Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.generic import GenericDialect, MisunderstoodError, understand

ICCID = "89860012345678900017"
NOW = datetime(2026, 3, 1, 12, 0, 0, 123_987, tzinfo=UTC)


CREDENTIAL = Credential("demo", "canary-secret-of-the-tests")
CARDS = [f"8986001234567{number:07d}" for number in range(1200)]


def api(cards: Collection[str] = ()) -> GenericDialect:
    book = CardBook(seed=7, unknown_rate=0, operation_delay=timedelta(0), cards=cards)
    return GenericDialect(SimulatorParts(book, CREDENTIAL))


def signed(path: str, fields: object, *, method: str = "POST") -> Request:
    body = orjson.dumps(fields)
    headers = signed_headers(CREDENTIAL, path=path, body=body, unix_s=int(NOW.timestamp()))
    return Request(method, path, {}, headers, body)


def test_a_question_is_understood() -> None:
    body = orjson.dumps({"account": "a", "iccid": ICCID, "request_id": "op"})
    assert understand(generic.STOP_PATH, body) == Question("stop", "a", (ICCID,), "op")
    assert understand(generic.USAGE_PATH, body) == Question("usage", "a", (ICCID,), "")
    batch = orjson.dumps({"account": "a", "iccids": [ICCID] * 100})
    assert len(understand(generic.USAGE_BATCH_PATH, batch).iccids) == 100


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (generic.USAGE_PATH, None),
        (generic.USAGE_PATH, []),
        (generic.USAGE_PATH, {"iccid": ICCID}),
        (generic.USAGE_PATH, {"account": "", "iccid": ICCID}),
        (generic.USAGE_PATH, {"account": "a"}),
        (generic.USAGE_PATH, {"account": "a", "iccid": "8986"}),
        (generic.USAGE_PATH, {"account": "a", "iccid": 8986}),
        (generic.USAGE_PATH, {"account": "a", "iccid": ICCID.lower() + "g"}),
        (generic.USAGE_BATCH_PATH, {"account": "a", "iccids": []}),
        (generic.USAGE_BATCH_PATH, {"account": "a", "iccids": [ICCID] * 101}),
        (generic.USAGE_BATCH_PATH, {"account": "a", "iccids": ICCID}),
        (generic.LIST_PATH, {"account": "a", "cursor": 7}),
        (generic.LIST_PATH, {"account": "a", "cursor": "'; --"}),
        (generic.STOP_PATH, {"account": "a", "iccid": ICCID}),
        (generic.STOP_PATH, {"account": "a", "iccid": ICCID, "request_id": "with space"}),
        (generic.OPERATION_PATH, {"account": "a", "iccid": ICCID, "request_id": 1}),
    ],
)
def test_what_is_not_of_the_contract_is_refused(path: str, fields: object) -> None:
    with pytest.raises(MisunderstoodError):
        understand(path, b"" if fields is None else orjson.dumps(fields))


def test_answers_are_as_of_the_millisecond_they_show() -> None:
    reply = api().answer(Question("usage", "a", (ICCID,), ""), NOW)
    assert orjson.loads(reply.body)["reading_at"] == "2026-03-01T12:00:00.123+00:00"


def test_a_request_id_belongs_to_one_operation() -> None:
    carrier = api()
    first = carrier.answer(Question("stop", "a", (ICCID,), "op"), NOW)
    assert first.outcome == "ok"
    other = carrier.answer(Question("resume", "a", (ICCID,), "op"), NOW)
    assert (other.status, other.outcome) == (400, "bad_request")


def test_only_signed_requests_of_the_contract_are_admitted() -> None:
    carrier = api()
    fields = {"account": "a", "iccid": ICCID}
    good = signed(generic.USAGE_PATH, fields)
    assert carrier.admit(good, NOW) == Question("usage", "a", (ICCID,))
    refused = [
        (carrier.admit(good, NOW), 401),  # a second time
        (carrier.admit(signed(generic.USAGE_PATH, fields), NOW + timedelta(seconds=301)), 401),
        (carrier.admit(signed(generic.USAGE_PATH, fields, method="GET"), NOW), 404),
        (carrier.admit(signed("/v2/usage", fields), NOW), 404),
        (carrier.admit(signed(generic.USAGE_PATH, {"account": "a"}), NOW), 400),
    ]
    for reply, status in refused:
        assert isinstance(reply, Reply)
        assert reply.status == status


def test_the_list_of_cards_comes_page_by_page_without_loss() -> None:
    carrier, cursor, told = api(CARDS), "", []
    while True:
        page = orjson.loads(carrier.answer(Question("list", "a", fields={"cursor": cursor}), NOW).body)
        told += [item["iccid"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = page["next_cursor"]
    assert told == CARDS


def test_only_cards_that_run_have_sessions() -> None:
    carrier, online = api(), 0
    for iccid in CARDS:
        session = orjson.loads(carrier.answer(Question("session", "a", (iccid,)), NOW).body)
        status = orjson.loads(carrier.answer(Question("status", "a", (iccid,)), NOW).body)
        assert session["online"] is False or status["status"] == "active"
        assert ("ip" in session) == session["online"]
        online += session["online"]
    assert 0.4 < online / len(CARDS) < 0.8
