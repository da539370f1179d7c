"""The driver against the simulated platform over a socket, and against a server that answers badly."""

import traceback
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from tests.gateway.carrier_rig import CREDENTIALS, account_of, asking, carrier, outcome_of
from tests.gateway.scripted_server import (
    Exchange,
    Respond,
    always,
    http_answer,
    json_answer,
    scripted_server,
)

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadResponse,
    CardResting,
    CardUnknown,
    GatewayError,
    NotOffered,
    Throttled,
    Transient,
    WrongCard,
)
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_cards import CardBook, expected_usage_kb
from junhong_cmp.gateway.simulators.ctcc_methods import access_number_of

ACCOUNT = account_of("ctcc")
CARDS = [CardRef(number, f"898603{number:013d}5") for number in range(1, 200)]
CARD = CARDS[0]
NUMBER = access_number_of(CARD.iccid)
ICCID = CARD.iccid[:19]
CONFIG = SimulatorConfig(credential=CREDENTIALS["ctcc"], driver="ctcc", seed=7)
BOOK = CardBook(seed=7, unknown_rate=0.0, operation_delay=timedelta(0))


def card_in(state: str) -> CardRef:
    return next(card for card in CARDS if BOOK.status(card.iccid, datetime.now(UTC)) == state)


def usage_page(number: object = ICCID, volume: str = "12.34MB", *, code: str = "0") -> bytes:
    fields = f"<IRESULT>{code}</IRESULT><TOTAL_BYTES_CNT>{volume}</TOTAL_BYTES_CNT><number>{number}</number>"
    return http_answer(f"<root><NEW_DATA_TICKET_QRsp>{fields}</NEW_DATA_TICKET_QRsp></root>".encode())


def asked(exchange: Exchange) -> dict[str, str]:
    address = urlsplit(exchange.head.split()[1].decode())
    query = parse_qs(address.query, keep_blank_values=True)
    return {name: values[0] for name, values in query.items()}


def platform(number: str = NUMBER, **answers: bytes) -> Respond:
    """Answer each method with its page; the card's number with ``number``."""

    async def respond(exchange: Exchange) -> None:
        method = asked(exchange)["method"]
        telephone = json_answer({"RESULT": "0", "SMSG": number})
        await exchange.send(telephone if method == "getTelephone" else answers[method])

    return respond


async def test_usage_of_a_late_account_is_of_so_much_earlier() -> None:
    lag = timedelta(hours=6)
    async with carrier(CONFIG) as (_, driver):
        before = datetime.now(UTC)
        reading = await driver.query_usage(ACCOUNT._replace(usage_lag=lag), CARD)
        assert before - lag <= reading.reading_at <= datetime.now(UTC) - lag


async def test_usage_is_what_the_platforms_own_books_say() -> None:
    async with carrier(CONFIG) as (_, driver):
        for card in CARDS[:5]:
            before = datetime.now(UTC)
            reading = await driver.query_usage(ACCOUNT, card)
            after = datetime.now(UTC)
            assert reading.iccid == card.iccid
            assert before <= reading.reading_at <= after
            least = expected_usage_kb(card.iccid, before - timedelta(milliseconds=1), 7) - 11
            assert least <= reading.used_kb <= expected_usage_kb(card.iccid, after, 7)


@pytest.mark.parametrize(
    ("state", "raw"),
    [("active", "4 在用"), ("suspended", "5 停机"), ("ready", "1 可激活"), ("testing", "2 测试激活")],
)
async def test_states_come_in_the_platforms_words_and_in_ours(state: str, raw: str) -> None:
    async with carrier(CONFIG) as (_, driver):
        answer = await driver.query_status(ACCOUNT, card_in(state))
    assert (answer.status, answer.raw) == (state, raw)


async def test_a_card_has_a_real_name_or_not() -> None:
    async with carrier(CONFIG) as (_, driver):
        found = {(await driver.query_realname(ACCOUNT, card)).status for card in CARDS[:20]}
        some = await driver.query_realname(ACCOUNT, CARD)
    assert found == {"verified", "unverified"}
    assert (some.status == "verified") == (BOOK.real_name(CARD.iccid) == "verified")


async def test_sessions_are_those_of_the_book() -> None:
    async with carrier(CONFIG) as (_, driver):
        answers = [await driver.query_session(ACCOUNT, card) for card in CARDS[:20]]
    for answer in answers:
        session = BOOK.session(answer.iccid, answer.at)
        assert (answer.online, answer.ip) == (session is not None, session.ip if session else None)
        assert answer.since == (session.since if session else None)
    assert {answer.online for answer in answers} == {True, False}


async def test_all_cards_are_listed_page_by_page() -> None:
    config = SimulatorConfig(
        credential=CONFIG.credential, driver="ctcc", seed=7, cards=[card.iccid for card in CARDS]
    )
    listed: list[str] = []
    async with carrier(config) as (_, driver):
        cursor: str | None = None
        while True:
            page = await driver.list_cards(ACCOUNT, cursor)
            listed += [card.iccid for card in page.cards]
            assert all(card.msisdn == access_number_of(card.iccid) for card in page.cards)
            cursor = page.next_cursor
            if cursor is None:
                break
    assert listed == sorted(card.iccid[:19] for card in CARDS)


async def test_a_card_is_stopped_and_resumed_and_twice_is_already_done() -> None:
    card = card_in("active")
    async with carrier(CONFIG) as (_, driver):
        stopped = await driver.stop(ACCOUNT, card, "s1")
        assert (stopped.request_id, stopped.state) == ("s1", OperationState.PENDING)
        assert (await driver.query_status(ACCOUNT, card)).status == "suspended"
        with pytest.raises(AlreadyDone):
            await driver.stop(ACCOUNT, card, "s2")
        await driver.resume(ACCOUNT, card, "r1")
        assert (await driver.query_status(ACCOUNT, card)).status == "active"
        with pytest.raises(AlreadyDone, match="不能重复订购"):
            await driver.resume(ACCOUNT, card, "r2")


async def test_an_order_waits_for_the_one_before_it() -> None:
    config = SimulatorConfig(
        credential=CONFIG.credential, driver="ctcc", seed=7, operation_delay=timedelta(minutes=1)
    )
    async with carrier(config) as (_, driver):
        card = card_in("active")
        await driver.stop(ACCOUNT, card, "s1")
        with pytest.raises(CardResting):
            await driver.resume(ACCOUNT, card, "r1")


async def test_another_password_is_refused_like_another_key() -> None:
    credential = Credential("user", "wrong-passwordabcdefghi")
    simulator = CarrierSimulator(CONFIG)
    await simulator.start()
    try:
        async with asking("ctcc", simulator.url, credential) as driver:
            with pytest.raises(AuthRejected):
                await driver.query_usage(ACCOUNT, CARD)
    finally:
        await simulator.stop()


async def test_what_the_platform_lacks_is_not_offered() -> None:
    async with asking("ctcc", "http://127.0.0.1:1") as driver:
        for call in ("query_usage_batch", "query_status_batch", "query_realname_batch"):
            assert await getattr(driver, call)(ACCOUNT, []) == {}
            with pytest.raises(NotOffered):
                await getattr(driver, call)(ACCOUNT, CARDS[:2])
        with pytest.raises(NotOffered):
            await driver.query_operation(ACCOUNT, CARD, "s1")


async def test_the_question_names_the_card_by_its_nineteen_characters() -> None:
    _, exchanges = await outcome_of("ctcc", always(usage_page()), CARD)
    assert exchanges[0].head.startswith(b"GET /query.do?")
    query = asked(exchanges[0])
    assert (query["method"], query["iccid"], query["needDtl"], query["user_id"]) == (
        "queryTraffic",
        ICCID,
        "0",
        "user",
    )
    assert b"canary" not in exchanges[0].head


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (usage_page("8986030000000000002"), WrongCard),
        (usage_page(volume="12.34TB"), BadResponse),
        (usage_page(volume="NaNMB"), BadResponse),
        (usage_page(volume="-0.01MB"), BadResponse),
        (usage_page(""), BadResponse),
        (usage_page(code="3"), Transient),
        (http_answer(b"<root><IRESULT>0</IRESULT></root>"), BadResponse),
        (http_answer(b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><r>&x;</r>"), BadResponse),
        (http_answer("-4：号码不存在".encode("gb18030")), CardUnknown),
        (http_answer("查询无数据".encode("gb18030")), BadResponse),
        (http_answer(b"\x81\xff\xff"), BadResponse),
        (http_answer(b"", status="429 Too Many Requests", extra="Retry-After: 7\r\n"), Throttled),
        (http_answer(b"", status="401 Unauthorized"), AuthRejected),
        (http_answer(b"", status="500 Internal Server Error"), Transient),
        (http_answer(b"-4", status="404 Not Found"), BadResponse),
    ],
)
async def test_each_answer_leads_to_what_is_to_be_done(answer: bytes, expected: type[GatewayError]) -> None:
    outcome, _ = await outcome_of("ctcc", always(answer), CARD)
    assert type(outcome) is expected


@pytest.mark.parametrize(
    "answer", [b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nA B\r\n\r\n"]
)
async def test_no_trace_of_a_failed_call_shows_its_address(answer: bytes) -> None:
    outcome, _ = await outcome_of("ctcc", always(answer), CARD)
    assert isinstance(outcome, GatewayError)
    trace = "".join(traceback.format_exception(outcome))
    assert "passWord=" not in trace
    assert "sign=" not in trace


async def test_an_access_number_in_the_answer_is_looked_up_if_we_know_none() -> None:
    outcome, exchanges = await outcome_of("ctcc", platform(queryTraffic=usage_page(f"86{NUMBER}")), CARD)
    assert not isinstance(outcome, GatewayError)
    assert [asked(exchange)["method"] for exchange in exchanges] == ["queryTraffic", "getTelephone"]
    other, _ = await outcome_of("ctcc", platform("1410999999999", queryTraffic=usage_page(NUMBER)), CARD)
    assert type(other) is WrongCard


async def test_an_access_number_we_know_needs_no_look_up() -> None:
    known = CardRef(1, CARD.iccid, msisdn=f"86{NUMBER}")
    right, exchanges = await outcome_of("ctcc", platform(queryTraffic=usage_page(NUMBER)), known)
    assert not isinstance(right, GatewayError)
    assert len(exchanges) == 1
    wrong, _ = await outcome_of("ctcc", platform(queryTraffic=usage_page("1410999999999")), known)
    assert type(wrong) is WrongCard


CHANGED = http_answer(b"<SvcCont><result>0</result></SvcCont>")


@pytest.mark.parametrize("call", ["stop", "resume"])
async def test_nothing_is_changed_under_a_number_that_is_not_the_cards(call: str) -> None:
    mistaken = CardRef(1, CARD.iccid, msisdn="1410999999999")
    outcome, exchanges = await outcome_of("ctcc", platform(disabledNumber=CHANGED), mistaken, call=call)
    assert type(outcome) is WrongCard
    assert [asked(exchange)["method"] for exchange in exchanges] == ["getTelephone"]


@pytest.mark.parametrize(("call", "order_type"), [("stop", "19"), ("resume", "20")])
async def test_an_order_is_sent_once_with_its_type(call: str, order_type: str) -> None:
    async def lose_the_reply(exchange: Exchange) -> None:
        if asked(exchange)["method"] == "getTelephone":
            await exchange.send(json_answer({"RESULT": "0", "SMSG": NUMBER}))
        else:
            exchange.reset()

    outcome, exchanges = await outcome_of("ctcc", lose_the_reply, CARD, call=call)
    assert isinstance(outcome, Transient)
    assert outcome.maybe_executed
    orders = [query for query in map(asked, exchanges) if query["method"] == "disabledNumber"]
    assert [(order["access_number"], order["acctCd"], order["orderTypeId"]) for order in orders] == [
        (NUMBER, "", order_type)
    ]


async def test_an_order_that_found_no_number_was_never_sent() -> None:
    async def lose_the_reply(exchange: Exchange) -> None:
        exchange.reset()

    outcome, exchanges = await outcome_of("ctcc", lose_the_reply, CARD, call="stop")
    assert isinstance(outcome, Transient)
    assert not outcome.maybe_executed
    assert len(exchanges) == 2


async def test_an_order_whose_number_is_unreadable_was_never_sent() -> None:
    respond = platform("gone", disabledNumber=CHANGED)
    outcome, exchanges = await outcome_of("ctcc", respond, CARD, call="stop")
    assert isinstance(outcome, Transient)
    assert not outcome.maybe_executed
    assert [asked(exchange)["method"] for exchange in exchanges] == ["getTelephone"]


async def test_a_number_that_differs_from_ours_is_asked_for_anew() -> None:
    numbers = ["1410999999999", NUMBER]

    async def respond(exchange: Exchange) -> None:
        if asked(exchange)["method"] == "getTelephone":
            await exchange.send(json_answer({"RESULT": "0", "SMSG": numbers.pop(0)}))
        else:
            await exchange.send(CHANGED)

    card = CardRef(1, CARD.iccid, msisdn=NUMBER)
    async with scripted_server(respond) as server, asking("ctcc", server.url) as driver:
        with pytest.raises(WrongCard):
            await driver.stop(ACCOUNT, card, "s1")
        assert (await driver.stop(ACCOUNT, card, "s2")).state is OperationState.PENDING


async def test_a_result_about_another_number_is_refused() -> None:
    page = http_answer(b"<SvcCont><result>0</result><number>1410999999999</number></SvcCont>")
    outcome, _ = await outcome_of("ctcc", platform(disabledNumber=page), CARD, call="stop")
    assert type(outcome) is WrongCard


def realname_page(number: str, code: str) -> bytes:
    person = f"<certNumber>null</certNumber><number>{number}</number>"
    return http_answer(
        f"<SvcCont><RESULT>{person}</RESULT><resultCode>{code}</resultCode></SvcCont>".encode()
    )


@pytest.mark.parametrize(
    ("number", "code", "expected"),
    [
        (NUMBER, "0", "unverified"),
        (NUMBER, "-5", "unverified"),
        ("1410999999999", "-5", WrongCard),
        (NUMBER, "-1", AuthRejected),
    ],
)
async def test_a_real_name_is_that_of_the_number_asked_about(
    number: str, code: str, expected: str | type[GatewayError]
) -> None:
    respond = platform(realNameQueryIot=realname_page(number, code))
    outcome, _ = await outcome_of("ctcc", respond, CARD, call="query_realname")
    assert getattr(outcome, "status", type(outcome)) == expected


async def test_a_number_that_led_astray_is_looked_up_again() -> None:
    pages = [b"<r><resultCode>-4</resultCode></r>", realname_page(NUMBER, "0")]
    methods: list[str] = []

    async def respond(exchange: Exchange) -> None:
        methods.append(asked(exchange)["method"])
        if methods[-1] == "getTelephone":
            await exchange.send(json_answer({"RESULT": "0", "SMSG": NUMBER}))
        else:
            page = pages.pop(0)
            await exchange.send(page if page.startswith(b"HTTP") else http_answer(page))

    async with scripted_server(respond) as server, asking("ctcc", server.url) as driver:
        with pytest.raises(CardUnknown):
            await driver.query_realname(ACCOUNT, CARD)
        assert (await driver.query_realname(ACCOUNT, CARD)).status == "unverified"
    assert methods == ["getTelephone", "realNameQueryIot"] * 2


async def test_numbers_are_looked_up_once() -> None:
    respond = platform(realNameQueryIot=realname_page(NUMBER, "0"))
    async with scripted_server(respond) as server, asking("ctcc", server.url) as driver:
        for _ in range(3):
            await driver.query_realname(ACCOUNT, CARD)
        methods = [asked(exchange)["method"] for exchange in server.exchanges]
    assert methods == ["getTelephone", *["realNameQueryIot"] * 3]


async def test_a_session_of_another_number_is_refused() -> None:
    description = {"result": "0", "msisdn": "861410999999999"}
    page = json_answer({"resultCode": "0", "description": description})
    outcome, _ = await outcome_of("ctcc", platform(getOnlineStatus=page), CARD, call="query_session")
    assert type(outcome) is WrongCard


async def test_a_list_of_another_page_is_refused() -> None:
    page = orjson.dumps({"resultCode": "0", "description": {"pageIndex": "9", "simList": []}})
    async with scripted_server(always(http_answer(page))) as server, asking("ctcc", server.url) as driver:
        with pytest.raises(BadResponse):
            await driver.list_cards(ACCOUNT, "2")
