from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.gateway.onelink_carrier import CREDENTIAL, START
from tests.waiting import FakeClock

from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.drivers import onelink
from junhong_cmp.gateway.drivers.onelink_transid import TransIds
from junhong_cmp.gateway.drivers.onelink_wire import TOKEN_PATH
from junhong_cmp.gateway.errors import AuthRejected, CardUnknown, Throttled, Transient
from junhong_cmp.gateway.http import HttpGateway, open_http_gateway
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_cards import CardBook
from junhong_cmp.gateway.simulator_faults import Fault
from junhong_cmp.gateway.simulator_log import read_log, summarise
from junhong_cmp.gateway.simulators.dialect import Reply, Request, SimulatorParts
from junhong_cmp.gateway.simulators.onelink import UNLISTED, OneLinkDialect

ICCID = "8986001440012345678"
ACCOUNT = GatewayAccount(id=1, code="移动-主账号", driver="onelink")


class Customer:
    """A customer asks a dialect directly, at the instant of its clock."""

    def __init__(self, *, unknown_rate: float = 0.0) -> None:
        self.clock = FakeClock(START)
        book = CardBook(seed=7, unknown_rate=unknown_rate, operation_delay=timedelta(0))
        self.dialect = OneLinkDialect(SimulatorParts(book, CREDENTIAL))
        self._transids = TransIds(self.clock)

    def transid(self) -> str:
        return self._transids.next(CREDENTIAL.key_id)

    def token(self) -> str:
        fields = {"appid": CREDENTIAL.key_id, "password": CREDENTIAL.secret, "transid": self.transid()}
        return str(said(self.send(TOKEN_PATH, fields))["result"][0]["token"])

    def send(self, path: str, fields: object, *, method: str = "POST") -> Reply:
        if method == "GET":
            request = Request("GET", path, fields, {}, b"")  # type: ignore[arg-type]  # a mapping of texts
        else:
            request = Request(method, path, {}, {}, orjson.dumps(fields))
        admitted = self.dialect.admit(request, self.clock.now())
        return admitted if isinstance(admitted, Reply) else self.dialect.answer(admitted, self.clock.now())

    def ask(self, path: str, **fields: str) -> Reply:
        return self.send(path, {"transid": self.transid(), "token": self.token(), **fields})


def said(reply: Reply) -> dict[str, Any]:
    assert reply.status == 200
    return dict(orjson.loads(reply.body))


@asynccontextmanager
async def running(config: SimulatorConfig, credential: Credential = CREDENTIAL) -> AsyncIterator[HttpGateway]:
    simulator = CarrierSimulator(config)
    await simulator.start()
    gateway = open_http_gateway(
        base_url=simulator.url, credentials={}, default_credential=credential, allow_http=True
    )
    await gateway.open()
    try:
        yield gateway
    finally:
        await gateway.close()
        await simulator.stop()


async def test_it_is_run_like_every_carrier(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    card, other = CardRef(1, ICCID), CardRef(2, "89860012345678900025")
    config = SimulatorConfig(driver="onelink", credential=CREDENTIAL, seed=7, log_path=path)
    async with running(config) as gateway:
        await gateway.query_usage(ACCOUNT, card)
        await gateway.query_usage_batch(ACCOUNT, [card, other])
        await gateway.query_status(ACCOUNT, card)
        await gateway.query_realname(ACCOUNT, card)
        await gateway.query_session(ACCOUNT, card)
    records = list(read_log(path))
    assert summarise(records).calls == {
        (card.iccid, "usage"): 2,
        (other.iccid, "usage"): 1,
        (card.iccid, "status"): 1,
        (card.iccid, "realname"): 1,
        (card.iccid, "session"): 1,
    }
    assert {record.account for record in records} == {CREDENTIAL.key_id}


async def test_it_says_in_its_own_words_that_calls_come_too_fast() -> None:
    config = SimulatorConfig(driver="onelink", credential=CREDENTIAL, throttle_qps=2)
    async with running(config) as gateway:
        await gateway.query_usage(ACCOUNT, CardRef(1, ICCID))
        with pytest.raises(Throttled, match=UNLISTED):
            await gateway.query_usage(ACCOUNT, CardRef(1, ICCID))


async def test_it_fails_as_told() -> None:
    config = SimulatorConfig(driver="onelink", credential=CREDENTIAL, error_rate=1)
    async with running(config) as gateway:
        with pytest.raises(Transient):
            await gateway.query_usage(ACCOUNT, CardRef(1, ICCID))


async def test_it_knows_who_may_ask() -> None:
    config = SimulatorConfig(driver="onelink", credential=CREDENTIAL)
    async with running(config, Credential(CREDENTIAL.key_id, "canary-wrong")) as gateway:
        with pytest.raises(AuthRejected, match="12022"):
            await gateway.query_usage(ACCOUNT, CardRef(1, ICCID))


async def test_it_does_not_have_every_card() -> None:
    config = SimulatorConfig(driver="onelink", credential=CREDENTIAL, unknown_rate=1)
    async with running(config) as gateway:
        with pytest.raises(CardUnknown):
            await gateway.query_status(ACCOUNT, CardRef(1, ICCID))


def test_a_token_is_needed_and_ends() -> None:
    customer = Customer()
    token = customer.token()
    fields: dict[str, str] = {"token": token, "iccid": ICCID}
    assert said(customer.send(onelink.STATUS_PATH, fields | {"transid": customer.transid()}))["status"] == "0"
    for wrong in ("", "x", token.upper() + "0"):
        asked = fields | {"transid": customer.transid(), "token": wrong}
        assert said(customer.send(onelink.STATUS_PATH, asked))["status"] == "12021"
    customer.clock.advance(timedelta(hours=1))
    late = customer.send(onelink.STATUS_PATH, fields | {"transid": customer.transid()})
    assert (said(late)["status"], late.outcome) == ("12021", "token_expired")


def test_a_transid_used_before_is_refused() -> None:
    customer = Customer()
    fields = {"token": customer.token(), "iccid": ICCID, "transid": customer.transid()}
    codes = [said(customer.send(onelink.USAGE_PATH, fields))["status"] for _ in range(2)]
    assert codes == ["0", "12004"]


def test_a_question_may_be_all_in_the_address() -> None:
    customer = Customer()
    fields = {"token": customer.token(), "iccid": ICCID, "transid": customer.transid()}
    assert said(customer.send(onelink.USAGE_PATH, fields, method="GET"))["status"] == "0"


def test_a_card_may_be_named_by_its_phone_number() -> None:
    customer = Customer()
    by_number = said(customer.ask(onelink.USAGE_PATH, msisdn=ICCID[6:]))
    assert by_number == said(customer.ask(onelink.USAGE_PATH, iccid=ICCID))
    told = said(customer.ask(onelink.BASIC_INFO_PATH, msisdn=ICCID[6:]))["result"][0]
    assert (told["iccid"], told["msisdn"]) == (ICCID, ICCID[6:])
    assert said(customer.ask(onelink.BASIC_INFO_PATH, iccid="898604B7192270274525"))["result"][0][
        "msisdn"
    ].isspace()


@pytest.mark.parametrize("path", ["/v5/ec/query/nothing", "/v1/usage/query", "/"])
def test_other_places_are_not_found(path: str) -> None:
    assert Customer().send(path, {}).status == 404


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"transid":1}'])
def test_a_body_of_another_form_is_refused(body: bytes) -> None:
    customer = Customer()
    admitted = customer.dialect.admit(Request("POST", TOKEN_PATH, {}, {}, body), customer.clock.now())
    assert isinstance(admitted, Reply)
    assert said(admitted)["status"] == "11000"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (onelink.USAGE_PATH, {}),
        (onelink.USAGE_PATH, {"iccid": ICCID, "msisdn": "1440012345678"}),
        (onelink.USAGE_PATH, {"iccid": "8986"}),
        (onelink.USAGE_PATH, {"msisdn": "144"}),
        (onelink.USAGE_PATH, {"imsi": "46002"}),
        (onelink.CHANGE_PATH, {"iccid": ICCID}),
        (onelink.CHANGE_PATH, {"iccid": ICCID, "operType": "9"}),
        (onelink.USAGE_BATCH_PATH, {"queryDate": "202603"}),
        (onelink.USAGE_BATCH_PATH, {"queryDate": "202603", "iccids": "_".join([ICCID] * 101)}),
        (onelink.USAGE_BATCH_PATH, {"queryDate": "202603", "iccids": f"{ICCID},{ICCID}"}),
        (onelink.USAGE_BATCH_PATH, {"queryDate": "202604", "iccids": ICCID}),
        (onelink.USAGE_BATCH_PATH, {"queryDate": "202509", "iccids": ICCID}),
        (onelink.USAGE_BATCH_PATH, {"iccids": ICCID}),
    ],
)
def test_a_question_of_another_form_is_refused(path: str, fields: Mapping[str, str]) -> None:
    assert said(Customer().ask(path, **fields))["status"] == "11000"


def test_a_card_known_by_its_imsi_alone_is_unknown() -> None:
    assert said(Customer().ask(onelink.USAGE_PATH, imsi="460021234567890"))["status"] == "11011"


def test_a_failure_is_the_carriers_or_a_proxys() -> None:
    dialect = Customer().dialect
    assert said(dialect.fail(Fault.CARRIER_ERROR))["status"] == "500"
    assert dialect.fail(Fault.PROXY_ERROR).status == 502
