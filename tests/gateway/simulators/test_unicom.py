"""What the simulated platform refuses, and in which words."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.drivers.unicom import DETAILS_PATH, EDIT_PATH
from junhong_cmp.gateway.drivers.unicom_signing import access_of, signed_body
from junhong_cmp.gateway.quantities import whole_kb
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators.dialect import Question, Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.unicom import UnicomDialect, volume_of

CREDENTIAL = Credential("app.open-id", "canary-secret")
ACCESS = access_of(CREDENTIAL)
ICCID = "89860100000000000001"
NOW = datetime(2026, 3, 10, 4, tzinfo=UTC)
CHANGE = {"asynchronous": "0", "iccid": ICCID, "changeType": "3", "targetValue": "3"}


@pytest.fixture
def dialect() -> UnicomDialect:
    book = CardBook(seed=7, unknown_rate=0.0, operation_delay=timedelta(0))
    return UnicomDialect(SimulatorParts(book, CREDENTIAL))


def body(
    question: dict[str, object], *, message_id: str = "usage-1", at: datetime = NOW
) -> dict[str, object]:
    fields: dict[str, object] = orjson.loads(signed_body(ACCESS, message_id, question, at))
    return fields


def refusal(dialect: UnicomDialect, fields: object, *, path: str = DETAILS_PATH) -> tuple[str, str]:
    raw = fields if isinstance(fields, bytes) else orjson.dumps(fields)
    reply = dialect.admit(Request("POST", path, {}, {}, raw), NOW)
    assert isinstance(reply, Reply)
    assert reply.status == 200
    return reply.outcome, orjson.loads(reply.body)["message"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"not json", ("bad_request", "请求格式不是 JSON")),
        ([], ("bad_request", "请求格式错误")),
        ({}, ("bad_request", "参数 timestamp 缺失")),
        ({**body({"iccids": [ICCID]}), "token": None}, ("bad_request", "参数 token 缺失")),
        ({**body({"iccids": [ICCID]}), "app_id": "other"}, ("auth", "app_id 无效")),
        ({**body({"iccids": [ICCID]}), "token": "0" * 64}, ("auth", "token 校验失败")),
        ({**body({"iccids": [ICCID]}), "trans_id": "1" * 23}, ("auth", "token 校验失败")),
        (body({"iccids": [ICCID]}, at=NOW - timedelta(minutes=6)), ("auth", "时间戳超出允许范围")),
        (body({"iccids": [ICCID]}, at=NOW + timedelta(minutes=6)), ("auth", "时间戳超出允许范围")),
        ({**body({}), "data": None}, ("bad_request", "请求格式错误")),
        ({**body({}), "data": {"openId": "other"}}, ("auth", "openId 无效")),
        (body({"iccids": [ICCID]}, message_id="a b"), ("bad_request", "参数 messageId 或 version 错误")),
        (body({}), ("bad_request", "参数 iccids 应为 1 至 50 个")),
        (body({"iccids": []}), ("bad_request", "参数 iccids 应为 1 至 50 个")),
        (body({"iccids": [ICCID] * 51}), ("bad_request", "参数 iccids 应为 1 至 50 个")),
        (body({"iccids": [ICCID, "8986"]}), ("bad_request", "参数 iccids 格式错误")),
        (body({"iccids": [8986]}), ("bad_request", "参数 iccids 格式错误")),
    ],
)
def test_each_wrong_question_has_its_words(
    dialect: UnicomDialect, fields: object, expected: tuple[str, str]
) -> None:
    assert refusal(dialect, fields) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"iccid": None}, ("bad_request", "参数 iccid 缺失")),
        ({"iccid": "8986"}, ("bad_request", "参数 iccid 格式错误")),
        ({"changeType": "4"}, ("bad_request", "不支持的变更参数")),
        ({"asynchronous": "1"}, ("bad_request", "不支持的变更参数")),
        ({"targetValue": "5"}, ("bad_request", "不支持的变更参数")),
    ],
)
def test_each_wrong_change_has_its_words(
    dialect: UnicomDialect, change: dict[str, object], expected: tuple[str, str]
) -> None:
    assert refusal(dialect, body({**CHANGE, **change}), path=EDIT_PATH) == expected


def test_a_call_counts_once(dialect: UnicomDialect) -> None:
    fields = body({"iccids": [ICCID]})
    asked = dialect.admit(Request("POST", DETAILS_PATH, {}, {}, orjson.dumps(fields)), NOW)
    assert isinstance(asked, Question)
    assert refusal(dialect, fields) == ("auth", "流水号已使用，签名无效")


@pytest.mark.parametrize(("method", "path"), [("GET", DETAILS_PATH), ("POST", "/wsGetTerminalDetails")])
def test_other_places_are_not_found(dialect: UnicomDialect, method: str, path: str) -> None:
    reply = dialect.admit(Request(method, path, {}, {}, orjson.dumps(body({"iccids": [ICCID]}))), NOW)
    assert isinstance(reply, Reply)
    assert reply.status == 404


@pytest.mark.parametrize(
    ("message_id", "op"),
    [("usage-1", "usage"), ("status-1", "status"), ("realname-1", "realname"), ("1", "usage")],
)
def test_the_message_says_what_details_are_for(dialect: UnicomDialect, message_id: str, op: str) -> None:
    fields = body({"iccids": [ICCID]}, message_id=message_id)
    asked = dialect.admit(Request("POST", DETAILS_PATH, {}, {}, orjson.dumps(fields)), NOW)
    assert asked == Question(op, "app", (ICCID,), message_id)


def test_usage_is_in_mb_since_the_27th(dialect: UnicomDialect) -> None:
    def used_mb(at: datetime) -> str:
        reply = dialect.answer(Question("usage", "app", (ICCID,), "m"), at)
        text: str = orjson.loads(reply.body)["data"]["terminals"][0]["monthToDateDataUsage"]
        return text

    begin = datetime(2026, 3, 26, 16, tzinfo=UTC)
    assert used_mb(begin) == "0.000"
    assert float(used_mb(begin - timedelta(seconds=1))) > float(used_mb(NOW)) > 1000


def test_it_fails_and_throttles_in_its_own_words(dialect: UnicomDialect) -> None:
    assert dialect.too_fast(3).outcome == "throttled"
    assert orjson.loads(dialect.too_fast(3).body)["status"] == "9429"
    assert dialect.fail(Fault.PROXY_ERROR).status == 502
    assert orjson.loads(dialect.fail(Fault.CARRIER_ERROR).body)["status"] == "9999"


@given(st.integers(0, 2**40))
def test_what_is_cut_off_is_less_than_two_kb(used_kb: int) -> None:
    told = whole_kb(volume_of(used_kb), "MB", default_unit="MB")
    assert used_kb - 2 <= told <= used_kb
