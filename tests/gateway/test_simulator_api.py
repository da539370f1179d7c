from datetime import UTC, datetime, timedelta

import orjson
import pytest

from junhong_cmp.gateway.simulator_api import CarrierApi, MisunderstoodError, Question, understand
from junhong_cmp.gateway.simulator_cards import CardBook

ICCID = "89860012345678900017"
NOW = datetime(2026, 3, 1, 12, 0, 0, 123_987, tzinfo=UTC)


def api() -> CarrierApi:
    return CarrierApi(CardBook(seed=7, unknown_rate=0, operation_delay=timedelta(0)))


def test_a_question_is_understood() -> None:
    body = orjson.dumps({"account": "a", "iccid": ICCID, "request_id": "op"})
    assert understand("stop", body) == Question("stop", "a", (ICCID,), "op")
    assert understand("usage", body) == Question("usage", "a", (ICCID,), "")
    batch = orjson.dumps({"account": "a", "iccids": [ICCID] * 100})
    assert len(understand("usage_batch", batch).iccids) == 100


@pytest.mark.parametrize(
    ("op", "fields"),
    [
        ("usage", None),
        ("usage", []),
        ("usage", {"iccid": ICCID}),
        ("usage", {"account": "", "iccid": ICCID}),
        ("usage", {"account": "a"}),
        ("usage", {"account": "a", "iccid": "8986"}),
        ("usage", {"account": "a", "iccid": 8986}),
        ("usage", {"account": "a", "iccid": ICCID.lower() + "g"}),
        ("usage_batch", {"account": "a", "iccids": []}),
        ("usage_batch", {"account": "a", "iccids": [ICCID] * 101}),
        ("usage_batch", {"account": "a", "iccids": ICCID}),
        ("stop", {"account": "a", "iccid": ICCID}),
        ("stop", {"account": "a", "iccid": ICCID, "request_id": "with space"}),
        ("operation", {"account": "a", "iccid": ICCID, "request_id": 1}),
    ],
)
def test_what_is_not_of_the_contract_is_refused(op: str, fields: object) -> None:
    with pytest.raises(MisunderstoodError):
        understand(op, b"" if fields is None else orjson.dumps(fields))


def test_answers_are_as_of_the_millisecond_they_show() -> None:
    reply = api().answer(Question("usage", "a", (ICCID,), ""), NOW)
    assert orjson.loads(reply.body)["reading_at"] == "2026-03-01T12:00:00.123+00:00"


def test_a_request_id_belongs_to_one_operation() -> None:
    carrier = api()
    first = carrier.answer(Question("stop", "a", (ICCID,), "op"), NOW)
    assert first.outcome == "ok"
    other = carrier.answer(Question("resume", "a", (ICCID,), "op"), NOW)
    assert (other.status, other.outcome) == (400, "bad_request")
