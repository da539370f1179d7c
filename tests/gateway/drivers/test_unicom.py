"""The driver against the simulated platform over a socket, and against a server that answers badly."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

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

from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.drivers.unicom import MAX_BATCH
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadResponse,
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

ACCOUNT = account_of("unicom")
CARDS = [CardRef(number, f"898601{number:014d}") for number in range(1, 200)]
CARD = CARDS[0]
CONFIG = SimulatorConfig(credential=CREDENTIALS["unicom"], driver="unicom", seed=7)
BOOK = CardBook(seed=7, unknown_rate=0.0, operation_delay=timedelta(0))


def card_in(state: str) -> CardRef:
    return next(card for card in CARDS if BOOK.status(card.iccid, datetime.now(UTC)) == state)


def is_right(reading: object, iccid: str, before: datetime, after: datetime) -> bool:
    assert isinstance(reading, UsageAnswer)
    assert reading.iccid == iccid
    assert before <= reading.reading_at <= after
    least = expected_usage_kb(iccid, before - timedelta(milliseconds=1), 7, billing_day=27) - 2
    return least <= reading.used_kb <= expected_usage_kb(iccid, after, 7, billing_day=27)


async def test_usage_of_a_late_account_is_of_so_much_earlier() -> None:
    lag = timedelta(hours=6)
    async with carrier(CONFIG) as (_, driver):
        before = datetime.now(UTC)
        reading = await driver.query_usage(ACCOUNT._replace(usage_lag=lag), CARD)
        assert before - lag <= reading.reading_at <= datetime.now(UTC) - lag


async def test_usage_is_what_the_platforms_own_books_say_since_the_27th() -> None:
    async with carrier(CONFIG) as (_, driver):
        for card in CARDS[:5]:
            before = datetime.now(UTC)
            reading = await driver.query_usage(ACCOUNT, card)
            assert is_right(reading, card.iccid, before, datetime.now(UTC))


async def test_fifty_cards_are_asked_about_at_once_and_each_gets_its_own_answer() -> None:
    async with carrier(CONFIG) as (simulator, driver):
        before = datetime.now(UTC)
        readings = await driver.query_usage_batch(ACCOUNT, CARDS[:MAX_BATCH])
        after = datetime.now(UTC)
        assert simulator._stats.snapshot()["requests"] == 1
    assert set(readings) == {card.card_id for card in CARDS[:MAX_BATCH]}
    assert all(is_right(readings[card.card_id], card.iccid, before, after) for card in CARDS[:MAX_BATCH])


async def test_states_and_real_names_come_in_batches_too() -> None:
    async with carrier(CONFIG) as (_, driver):
        states = await driver.query_status_batch(ACCOUNT, CARDS[:MAX_BATCH])
        names = await driver.query_realname_batch(ACCOUNT, CARDS[:MAX_BATCH])
        assert await driver.query_status_batch(ACCOUNT, []) == {}
    now = datetime.now(UTC)
    for card in CARDS[:MAX_BATCH]:
        assert getattr(states[card.card_id], "status", None) == BOOK.status(card.iccid, now)
        assert getattr(names[card.card_id], "status", None) == BOOK.real_name(card.iccid)


async def test_more_than_fifty_are_too_many() -> None:
    async with asking("unicom", "http://127.0.0.1:1") as driver:
        with pytest.raises(ValueError, match="50"):
            await driver.query_usage_batch(ACCOUNT, CARDS[: MAX_BATCH + 1])


@pytest.mark.parametrize(
    ("state", "raw"),
    [("active", "2 已激活"), ("suspended", "3 已停用"), ("ready", "1 可激活"), ("testing", "0 可测试")],
)
async def test_states_come_in_the_platforms_words_and_in_ours(state: str, raw: str) -> None:
    async with carrier(CONFIG) as (_, driver):
        answer = await driver.query_status(ACCOUNT, card_in(state))
    assert (answer.status, answer.raw) == (state, raw)


async def test_a_card_has_the_real_name_state_of_the_book() -> None:
    async with carrier(CONFIG) as (_, driver):
        for card in CARDS[:10]:
            assert (await driver.query_realname(ACCOUNT, card)).status == BOOK.real_name(card.iccid)


async def test_a_card_is_stopped_and_resumed_and_twice_is_already_done() -> None:
    card = card_in("active")
    async with carrier(CONFIG) as (_, driver):
        stopped = await driver.stop(ACCOUNT, card, "s1")
        assert (stopped.request_id, stopped.state) == ("s1", OperationState.DONE)
        assert (await driver.query_status(ACCOUNT, card)).status == "suspended"
        with pytest.raises(AlreadyDone):
            await driver.stop(ACCOUNT, card, "s2")
        await driver.resume(ACCOUNT, card, "r1")
        assert (await driver.query_status(ACCOUNT, card)).status == "active"
        with pytest.raises(AlreadyDone):
            await driver.resume(ACCOUNT, card, "r2")


async def test_cards_it_does_not_know_are_unknown_and_spoil_nothing() -> None:
    config = SimulatorConfig(credential=CONFIG.credential, driver="unicom", seed=7, unknown_rate=0.3)
    book = CardBook(seed=7, unknown_rate=0.3, operation_delay=timedelta(0))
    async with carrier(config) as (_, driver):
        results = await driver.query_usage_batch(ACCOUNT, CARDS[:MAX_BATCH])
        for card in CARDS[:MAX_BATCH]:
            expected = UsageAnswer if book.knows(card.iccid) else CardUnknown
            assert type(results[card.card_id]) is expected
        stranger = next(card for card in CARDS if not book.knows(card.iccid))
        for call in (driver.query_usage, driver.query_status, driver.query_realname):
            with pytest.raises(CardUnknown):
                await call(ACCOUNT, stranger)
        with pytest.raises(CardUnknown):
            await driver.stop(ACCOUNT, stranger, "s1")


async def test_another_app_is_refused_like_another_open_id() -> None:
    credential = Credential("other.open-id", "canary-secret")
    simulator = CarrierSimulator(CONFIG)
    await simulator.start()
    try:
        async with asking("unicom", simulator.url, credential) as driver:
            with pytest.raises(AuthRejected):
                await driver.query_usage(ACCOUNT, CARD)
    finally:
        await simulator.stop()


async def test_what_the_platform_lacks_is_not_offered() -> None:
    async with asking("unicom", "http://127.0.0.1:1") as driver:
        with pytest.raises(NotOffered):
            await driver.query_operation(ACCOUNT, CARD, "s1")
        with pytest.raises(NotOffered):
            await driver.query_session(ACCOUNT, CARD)
        with pytest.raises(NotOffered):
            await driver.list_cards(ACCOUNT, None)


def test_the_table_knows_its_cycle_and_batches() -> None:
    defaults = DRIVERS["unicom"].defaults
    assert (defaults.billing_day, defaults.usage_unit) == (27, "MB")
    assert set(defaults.batch_sizes.values()) == {MAX_BATCH}


def asked(exchange: Exchange) -> dict[str, object]:
    data: dict[str, object] = orjson.loads(exchange.body)["data"]
    return data


def platform(answer: Callable[[Sequence[str]], object]) -> Respond:
    """Answer with what ``answer`` makes of the ICCIDs: terminals, or a message to refuse with."""

    async def respond(exchange: Exchange) -> None:
        question = asked(exchange)
        iccids = question.get("iccids")
        made = answer(iccids if isinstance(iccids, list) else [])
        if isinstance(made, str):
            await exchange.send(json_answer({"status": "9501", "message": made}))
        else:
            data = {"messageId": question["messageId"], "resultCode": "0000", "terminals": made}
            await exchange.send(json_answer({"status": "0000", "message": "", "data": data}))

    return respond


def details(iccid: str, used: object = "12.34") -> dict[str, object]:
    return {"iccid": iccid, "monthToDateDataUsage": used, "simStatus": "2", "realNameStatus": "2"}


@pytest.mark.parametrize(
    ("terminals", "expected"),
    [
        ([details("89860100000000000002")], WrongCard),
        ([details(CARD.iccid), details("89860100000000000002")], WrongCard),
        ([details(CARD.iccid, "12.34TB")], BadResponse),
        ([details(CARD.iccid, "NaN")], BadResponse),
        ([details(CARD.iccid, None)], BadResponse),
        ([{"iccid": CARD.iccid}], BadResponse),
        ([{"monthToDateDataUsage": "1"}], BadResponse),
        ([], CardUnknown),
        (None, BadResponse),
        ("Token校验失败", AuthRejected),
        ("日调用次数超限", GatewayError),
        ("卡不存在", CardUnknown),
    ],
)
async def test_each_answer_leads_to_what_is_to_be_done(
    terminals: object, expected: type[GatewayError]
) -> None:
    outcome, _ = await outcome_of("unicom", platform(lambda _: terminals), CARD)
    assert isinstance(outcome, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (http_answer(b"<html>login</html>", content_type="text/html"), BadResponse),
        (http_answer('{"status":"状态"}'.encode("gb18030")), BadResponse),
        (json_answer({"status": "0000", "data": {"messageId": "other", "resultCode": "0000"}}), WrongCard),
        (http_answer(b"", status="429 Too Many Requests"), Throttled),
        (http_answer(b"", status="403 Forbidden"), AuthRejected),
        (http_answer(b"", status="404 Not Found"), BadResponse),
        (http_answer(b"", status="502 Bad Gateway"), Transient),
    ],
)
async def test_each_strange_page_leads_to_what_is_to_be_done(
    answer: bytes, expected: type[GatewayError]
) -> None:
    outcome, _ = await outcome_of("unicom", always(answer), CARD)
    assert type(outcome) is expected


async def test_one_number_that_has_a_whole_batch_refused_is_found() -> None:
    bad = CARDS[11].iccid

    def answer(iccids: Sequence[str]) -> object:
        return "ICCID不存在" if bad in iccids else [details(iccid) for iccid in iccids]

    async with scripted_server(platform(answer)) as server, asking("unicom", server.url) as driver:
        results = dict(await driver.query_usage_batch(ACCOUNT, CARDS[:MAX_BATCH]))
        sent = len(server.exchanges)
    assert type(results.pop(CARDS[11].card_id)) is CardUnknown
    assert {type(result) for result in results.values()} == {UsageAnswer}
    assert len(results) == MAX_BATCH - 1
    assert sent <= 2 * 6 + 1


async def test_what_concerns_all_of_a_batch_is_raised_at_once() -> None:
    async with (
        scripted_server(platform(lambda _: "访问频率过高")) as server,
        asking("unicom", server.url) as driver,
    ):
        with pytest.raises(Throttled):
            await driver.query_usage_batch(ACCOUNT, CARDS[:MAX_BATCH])
        assert len(server.exchanges) == 1


@pytest.mark.parametrize(("call", "target", "sent"), [("stop", "3", 1), ("resume", "2", 1)])
async def test_a_change_is_sent_once(call: str, target: str, sent: int) -> None:
    async def lose_the_reply(exchange: Exchange) -> None:
        exchange.reset()

    outcome, exchanges = await outcome_of("unicom", lose_the_reply, CARD, call=call)
    assert isinstance(outcome, Transient)
    assert outcome.maybe_executed
    assert len(exchanges) == sent
    change = asked(exchanges[0])
    assert (change["iccid"], change["changeType"], change["targetValue"], change["messageId"]) == (
        CARD.iccid,
        "3",
        target,
        "request-1",
    )


async def test_a_question_sent_again_has_a_serial_number_of_its_own() -> None:
    async def lose_the_reply(exchange: Exchange) -> None:
        exchange.reset()

    _, exchanges = await outcome_of("unicom", lose_the_reply, CARD)
    bodies = [orjson.loads(exchange.body) for exchange in exchanges]
    assert len({body["trans_id"] for body in bodies}) == 2
    assert len({body["data"]["messageId"] for body in bodies}) == 1
    assert all(b"canary" not in exchange.body for exchange in exchanges)


@pytest.mark.parametrize("iccid", ["89860100000000000002", None])
async def test_a_change_of_another_card_is_refused(iccid: str | None) -> None:
    async def respond(exchange: Exchange) -> None:
        data = {"messageId": "request-1", "resultCode": "0000", "iccid": iccid}
        await exchange.send(json_answer({"status": "0000", "data": data}))

    outcome, _ = await outcome_of("unicom", respond, CARD, call="stop")
    assert isinstance(outcome, BadResponse)
