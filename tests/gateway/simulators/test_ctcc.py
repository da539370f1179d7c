"""What the simulated platform refuses, and in which words."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from junhong_cmp.gateway.drivers.ctcc_signing import access_of, signed_query
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulators.ctcc import CtccDialect
from junhong_cmp.gateway.simulators.ctcc_methods import access_number_of
from junhong_cmp.gateway.simulators.dialect import Question, Reply, Request, SimulatorParts

CREDENTIAL = Credential("user", "canary-passwordabcdefghi")
ACCESS = access_of(CREDENTIAL)
ICCID = "8986030000000000001"
NOW = datetime(2026, 3, 10, 4, tzinfo=UTC)


@pytest.fixture
def dialect() -> CtccDialect:
    book = CardBook(seed=7, unknown_rate=0.0, operation_delay=timedelta(0))
    return CtccDialect(SimulatorParts(book, CREDENTIAL))


def request(query: dict[str, str], *, method: str = "GET", path: str = "/query.do") -> Request:
    return Request(method, path, query, {}, b"")


def signed(method: str, **parameters: str) -> dict[str, str]:
    return signed_query(ACCESS, method, parameters)


def refusal(dialect: CtccDialect, asked: Request) -> tuple[str, str]:
    reply = dialect.admit(asked, NOW)
    assert isinstance(reply, Reply)
    assert reply.status == 200
    return reply.outcome, reply.body.decode().partition("：")[0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ("bad_request", "-2")),
        ({"method": "dropEverything"}, ("bad_request", "-2")),
        ({**signed("dropEverything", iccid=ICCID)}, ("bad_request", "-2")),
        ({**signed("queryTraffic", iccid=ICCID), "sign": ""}, ("bad_request", "-2")),
        ({**signed("queryTraffic", iccid=ICCID), "user_id": "other"}, ("auth", "-1")),
        ({**signed("queryTraffic", iccid=ICCID), "passWord": "00"}, ("auth", "-1")),
        ({**signed("queryTraffic", iccid=ICCID), "sign": "00"}, ("auth", "-3")),
        ({**signed("queryTraffic", iccid=ICCID), "iccid": "8986030000000000002"}, ("auth", "-3")),
        ({**signed("queryTraffic", iccid=ICCID), "method": "getOnlineStatus"}, ("auth", "-3")),
        (signed("queryTraffic"), ("bad_request", "-2")),
        (signed("queryTraffic", iccid=ICCID, access_number="14100000000"), ("bad_request", "-2")),
        (signed("queryTraffic", iccid=f"{ICCID}5"), ("card_unknown", "-4")),
        (signed("queryTraffic", iccid="8986030000000000O01"), ("card_unknown", "-4")),
        (signed("queryTraffic", access_number="123"), ("card_unknown", "-4")),
        (signed("queryTraffic", access_number="1410000000000"), ("card_unknown", "-4")),
        (signed("realNameQueryIot", iccid=ICCID), ("bad_request", "-2")),
        (signed("disabledNumber", access_number="1410000000000", orderTypeId="19"), ("bad_request", "-2")),
        (
            signed("disabledNumber", access_number="1410000000000", acctCd="", orderTypeId="21"),
            ("bad_request", "-2"),
        ),
        (signed("getSIMList"), ("bad_request", "-2")),
        (signed("getSIMList", pageIndex="0"), ("bad_request", "-2")),
    ],
)
def test_each_wrong_call_has_its_code(
    dialect: CtccDialect, query: dict[str, str], expected: tuple[str, str]
) -> None:
    assert refusal(dialect, request(query)) == expected


@pytest.mark.parametrize(("method", "path"), [("POST", "/query.do"), ("GET", "/app/pay.do")])
def test_other_places_are_not_found(dialect: CtccDialect, method: str, path: str) -> None:
    reply = dialect.admit(request(signed("getSIMList", pageIndex="1"), method=method, path=path), NOW)
    assert isinstance(reply, Reply)
    assert reply.status == 404


def test_a_right_call_is_admitted_with_its_account_and_card(dialect: CtccDialect) -> None:
    asked = dialect.admit(request(signed("queryTraffic", iccid=ICCID, needDtl="0")), NOW)
    assert isinstance(asked, Question)
    assert (asked.op, asked.account, asked.iccids) == ("usage", "user", (ICCID,))


def test_a_card_can_be_asked_about_by_its_number_once_that_is_known(dialect: CtccDialect) -> None:
    telephone = dialect.admit(request(signed("getTelephone", iccid=ICCID)), NOW)
    assert isinstance(telephone, Question)
    number = orjson.loads(dialect.answer(telephone, NOW).body)["SMSG"]
    assert number == access_number_of(ICCID)
    asked = dialect.admit(request(signed("queryTraffic", access_number=number)), NOW)
    assert isinstance(asked, Question)
    assert asked.iccids == (ICCID,)
    assert f"<number>{number}</number>" in dialect.answer(asked, NOW).body.decode()


def test_every_question_is_answered_in_the_platforms_form(dialect: CtccDialect) -> None:
    asked = {
        "queryTraffic": b"<root>",
        "queryCardMainStatus": b"{",
        "getOnlineStatus": b"{",
        "getTelephone": b"{",
    }
    for method, begin in asked.items():
        question = dialect.admit(request(signed(method, iccid=ICCID)), NOW)
        assert isinstance(question, Question)
        reply = dialect.answer(question, NOW)
        assert reply.outcome == "ok"
        assert reply.body.startswith(begin)


def test_it_fails_and_throttles_in_its_own_words(dialect: CtccDialect) -> None:
    assert dialect.too_fast(3).body.startswith(b"101004")
    assert dialect.too_fast(3).outcome == "throttled"
    assert dialect.fail(Fault.PROXY_ERROR).status == 502
    assert b"<result>9001</result>" in dialect.fail(Fault.CARRIER_ERROR).body
