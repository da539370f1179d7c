import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from tests.gateway.onelink_carrier import (
    ACCOUNT,
    CREDENTIAL,
    START,
    Carrier,
    after_token,
    answer,
    onelink_carrier,
    onelink_driver,
)
from tests.gateway.scripted_server import Exchange, scripted_server
from tests.waiting import FakeClock, wait_until

from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers import onelink
from junhong_cmp.gateway.drivers.onelink import OneLinkDriver
from junhong_cmp.gateway.drivers.onelink_wire import TOKEN_PATH
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
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
from junhong_cmp.gateway.simulator_cards import expected_usage_kb

CARD = CardRef(1, "89860012345678900017")
SEED = 7


def card(number: int) -> CardRef:
    return CardRef(number, f"8986001234567{number:06d}0")


CARDS = [card(number) for number in range(100)]
MORE_CARDS = [card(number) for number in range(1000)]


def first_in_state(carrier: Carrier, status: str) -> CardRef:
    return next(one for one in MORE_CARDS if carrier.book.status(one.iccid, carrier.clock.now()) == status)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
async def carrier(clock: FakeClock) -> AsyncIterator[Carrier]:
    async with onelink_carrier(clock) as carrier:
        yield carrier


@pytest.fixture
async def driver(carrier: Carrier, clock: FakeClock) -> AsyncIterator[OneLinkDriver]:
    async with onelink_driver(carrier.url, clock) as driver:
        yield driver


async def test_usage_is_of_now(driver: OneLinkDriver, clock: FakeClock) -> None:
    answered = await driver.query_usage(ACCOUNT, CARD)
    assert answered == UsageAnswer(CARD.iccid, expected_usage_kb(CARD.iccid, clock.now(), SEED), clock.now())


async def test_usage_of_a_late_account_is_of_so_much_earlier(driver: OneLinkDriver, clock: FakeClock) -> None:
    lag = timedelta(days=1)
    answered = await driver.query_usage(ACCOUNT._replace(usage_lag=lag), CARD)
    assert answered.reading_at == clock.now() - lag


@pytest.mark.parametrize("status", ["active", "suspended", "testing", "ready"])
async def test_a_state_is_told_in_our_words_and_theirs(
    status: str, driver: OneLinkDriver, carrier: Carrier
) -> None:
    answered = await driver.query_status(ACCOUNT, first_in_state(carrier, status))
    assert answered.status == status
    assert answered.raw == {"active": "2", "suspended": "4", "testing": "6", "ready": "1"}[status]


async def test_real_name_is_told(driver: OneLinkDriver, carrier: Carrier) -> None:
    for one in CARDS[:9]:
        answered = await driver.query_realname(ACCOUNT, one)
        expected = "verified" if carrier.book.real_name(one.iccid) == "verified" else "unverified"
        assert answered.status == expected


async def test_a_session_is_told(driver: OneLinkDriver, carrier: Carrier, clock: FakeClock) -> None:
    seen = set()
    for one in CARDS[:12]:
        answered = await driver.query_session(ACCOUNT, one)
        session = carrier.book.session(one.iccid, clock.now())
        expected = (False, None, None) if session is None else (True, session.ip, session.since)
        assert (answered.online, answered.ip, answered.since) == expected
        seen.add(answered.online)
    assert seen == {True, False}


async def test_secrets_stay_out_of_addresses_and_every_call_has_its_own_number(
    driver: OneLinkDriver, carrier: Carrier, clock: FakeClock
) -> None:
    for _ in range(5):
        await driver.query_usage(ACCOUNT, CARD)
    local = (clock.now() + timedelta(hours=8)).strftime("%Y%m%d%H%M%S")
    transids = [fields["transid"] for _, fields in carrier.asked]
    assert all(re.fullmatch(CREDENTIAL.key_id + local + "[0-9]{8}", transid) for transid in transids)
    assert len(set(transids)) == len(transids) == 6
    asked = {key: fields for path, fields in carrier.asked for key in [path]}
    assert set(asked[TOKEN_PATH]) == {"appid", "password", "transid"}
    assert set(asked[onelink.USAGE_PATH]) == {"token", "transid", "iccid"}


async def test_a_token_is_used_until_shortly_before_its_end(
    driver: OneLinkDriver, carrier: Carrier, clock: FakeClock
) -> None:
    for _ in range(12):
        await driver.query_usage(ACCOUNT, CARD)
        clock.advance(timedelta(minutes=4))
    assert carrier.count(TOKEN_PATH) == 1
    clock.advance(timedelta(minutes=30))
    await driver.query_usage(ACCOUNT, CARD)
    assert carrier.count(TOKEN_PATH) == 2
    assert set(carrier.outcomes) == {"ok"}


async def test_200_callers_whose_token_has_ended_wait_for_one_new_one(
    driver: OneLinkDriver, carrier: Carrier
) -> None:
    await driver.query_usage(ACCOUNT, CARD)
    carrier.expire_token()
    answers = await asyncio.gather(*(driver.query_usage(ACCOUNT, card(number)) for number in range(200)))
    assert [one.iccid for one in answers] == [card(number).iccid for number in range(200)]
    assert carrier.outcomes.count("token_expired") >= 1
    assert carrier.count(TOKEN_PATH) == 2


async def test_callers_that_give_up_while_a_token_is_fetched_take_nobody_with_them(clock: FakeClock) -> None:
    tokens, refused, gate = iter(("old", "new")), 0, asyncio.Event()

    async def carrier(exchange: Exchange) -> None:
        nonlocal refused
        if TOKEN_PATH.encode() in exchange.head:
            token = next(tokens)
            if token == "new":
                await gate.wait()
            await exchange.send(answer({"token": token}))
        elif orjson.loads(exchange.body)["token"] == "old":
            refused += 1
            await exchange.send(answer(status="12021", message="token 已过期"))
        else:
            await exchange.send(answer({"dataAmount": "1"}))

    async with scripted_server(carrier) as server, onelink_driver(server.url, clock) as driver:
        callers = [asyncio.create_task(driver.query_usage(ACCOUNT, one)) for one in CARDS]
        await wait_until(lambda: refused == 100, description="every call with the old token was refused")
        for caller in callers[::2]:
            caller.cancel()
        gate.set()
        outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes[::2])
    assert all(isinstance(outcome, UsageAnswer) for outcome in outcomes[1::2])
    assert next(tokens, None) is None


async def test_a_change_is_made_once_though_its_token_had_ended(
    driver: OneLinkDriver, carrier: Carrier
) -> None:
    await driver.query_usage(ACCOUNT, CARD)
    carrier.expire_token()
    running = first_in_state(carrier, "active")
    await driver.stop(ACCOUNT, running, "op-1")
    assert carrier.outcomes[-3:] == ["token_expired", "ok", "ok"]


async def test_a_wrong_password_is_told_to_everybody_once(carrier: Carrier, clock: FakeClock) -> None:
    wrong = Credential(CREDENTIAL.key_id, "canary-wrong")
    async with onelink_driver(carrier.url, clock, wrong) as driver:
        outcomes = await asyncio.gather(
            *(driver.query_usage(ACCOUNT, one) for one in CARDS), return_exceptions=True
        )
    assert {type(outcome) for outcome in outcomes} == {AuthRejected}
    assert not any("canary" in str(outcome) for outcome in outcomes)
    assert carrier.count(TOKEN_PATH) == 1


async def test_a_token_that_is_refused_at_once_is_not_fetched_for_ever(clock: FakeClock) -> None:
    async with scripted_server(after_token([answer(status="12021", message="过期")])) as server:
        async with onelink_driver(server.url, clock) as driver:
            with pytest.raises(AuthRejected):
                await driver.query_usage(ACCOUNT, CARD)
        assert len(server.exchanges) == 4


async def test_a_card_is_stopped_and_resumed(
    driver: OneLinkDriver, carrier: Carrier, clock: FakeClock
) -> None:
    running = first_in_state(carrier, "active")
    stopped = await driver.stop(ACCOUNT, running, "op-1")
    assert (stopped.request_id, stopped.iccid, stopped.state) == (
        "op-1",
        running.iccid,
        OperationState.PENDING,
    )
    assert (await driver.query_status(ACCOUNT, running)).status == "suspended"
    with pytest.raises(AlreadyDone, match="12047"):
        await driver.stop(ACCOUNT, running, "op-2")
    clock.advance(timedelta(minutes=3))
    await driver.resume(ACCOUNT, running, "op-3")
    assert (await driver.query_status(ACCOUNT, running)).status == "active"
    with pytest.raises(AlreadyDone, match="12048"):
        await driver.resume(ACCOUNT, running, "op-4")


async def test_a_card_can_be_changed_once_in_three_minutes(
    driver: OneLinkDriver, carrier: Carrier, clock: FakeClock
) -> None:
    running = first_in_state(carrier, "active")
    await driver.stop(ACCOUNT, running, "op-1")
    clock.advance(timedelta(minutes=2, seconds=59))
    with pytest.raises(CardResting):
        await driver.resume(ACCOUNT, running, "op-2")
    clock.advance(timedelta(seconds=1))
    assert (await driver.resume(ACCOUNT, running, "op-2")).state is OperationState.PENDING


async def test_a_card_that_never_ran_cannot_be_stopped(driver: OneLinkDriver, carrier: Carrier) -> None:
    with pytest.raises(BadRequest, match="12089"):
        await driver.stop(ACCOUNT, first_in_state(carrier, "ready"), "op-1")


@pytest.mark.parametrize("call", ["stop", "resume"])
async def test_a_change_with_a_lost_reply_is_not_sent_again(call: str, clock: FakeClock) -> None:
    async def lose_the_reply(exchange: Exchange) -> None:
        if TOKEN_PATH.encode() in exchange.head:
            await exchange.send(answer({"token": "good"}))
        else:
            exchange.reset()

    async with scripted_server(lose_the_reply) as server, onelink_driver(server.url, clock) as driver:
        with pytest.raises(Transient) as lost:
            await getattr(driver, call)(ACCOUNT, CARD, "op-1")
    assert lost.value.maybe_executed
    assert len(server.exchanges) == 2


async def test_a_question_with_a_lost_reply_is_asked_again_under_a_new_number(clock: FakeClock) -> None:
    async def lose_the_first_reply(exchange: Exchange) -> None:
        if TOKEN_PATH.encode() in exchange.head:
            await exchange.send(answer({"token": "good"}))
        elif exchange.number == 1:
            exchange.reset()
        else:
            await exchange.send(answer({"dataAmount": "5"}))

    async with scripted_server(lose_the_first_reply) as server, onelink_driver(server.url, clock) as driver:
        assert (await driver.query_usage(ACCOUNT, CARD)).used_kb == 5
    numbers = [orjson.loads(exchange.body)["transid"] for exchange in server.exchanges]
    assert len(set(numbers)) == 3


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"iccid": CARD.iccid, "orderNum": "1"}, None),
        ({"iccid": CARD.iccid[:19]}, None),
        ({"iccid": card(2).iccid}, WrongCard),
        ({"orderNum": "1"}, BadResponse),
        ({"msisdn": "1440012345678"}, BadResponse),
    ],
)
async def test_a_change_has_to_name_its_card(
    item: object, expected: type[GatewayError] | None, clock: FakeClock
) -> None:
    async with (
        scripted_server(after_token([answer(item)])) as server,
        onelink_driver(server.url, clock) as driver,
    ):
        if expected is None:
            await driver.stop(ACCOUNT, CARD, "op-1")
        else:
            with pytest.raises(expected):
                await driver.stop(ACCOUNT, CARD, "op-1")


async def test_a_hundred_cards_are_asked_about_in_one_call(
    driver: OneLinkDriver, carrier: Carrier, clock: FakeClock
) -> None:
    answers = await driver.query_usage_batch(ACCOUNT, CARDS)
    end = datetime(2026, 3, 9, 15, 59, 59, 999000, tzinfo=UTC)
    assert answers == {
        one.card_id: UsageAnswer(one.iccid, expected_usage_kb(one.iccid, end, SEED), end) for one in CARDS
    }
    assert carrier.count(onelink.USAGE_BATCH_PATH) == 1


async def test_unknown_cards_do_not_spoil_a_batch(clock: FakeClock) -> None:
    async with (
        onelink_carrier(clock, unknown_rate=0.1) as carrier,
        onelink_driver(carrier.url, clock) as driver,
    ):
        answers = await driver.query_usage_batch(ACCOUNT, CARDS)
        unknown = {one.card_id for one in CARDS if not carrier.book.knows(one.iccid)}
    assert 0 < len(unknown) < 100
    assert {card_id for card_id, one in answers.items() if isinstance(one, CardUnknown)} == unknown
    assert {card_id for card_id, one in answers.items() if isinstance(one, UsageAnswer)} == (
        {one.card_id for one in CARDS} - unknown
    )


async def test_a_card_for_whose_sake_a_whole_batch_is_refused_is_found(clock: FakeClock) -> None:
    bad = CARDS[37].iccid

    async def refuse_with_the_bad_one(exchange: Exchange) -> None:
        fields = orjson.loads(exchange.body)
        if TOKEN_PATH.encode() in exchange.head:
            await exchange.send(answer({"token": "good"}))
        elif bad in fields["iccids"]:
            await exchange.send(answer(status="12009", message="卡号鉴权失败"))
        else:
            entries = [{"iccid": iccid, "dataAmount": "1"} for iccid in fields["iccids"].split("_")]
            await exchange.send(answer({"dataAmountList": entries}))

    async with (
        scripted_server(refuse_with_the_bad_one) as server,
        onelink_driver(server.url, clock) as driver,
    ):
        answers = await driver.query_usage_batch(ACCOUNT, CARDS)
    assert [card_id for card_id, one in answers.items() if not isinstance(one, UsageAnswer)] == [37]
    assert isinstance(answers[37], CardUnknown)
    assert len(server.exchanges) < 20


async def test_what_halves_have_told_is_kept_when_the_account_is_throttled(clock: FakeClock) -> None:
    half = [{"iccid": one.iccid, "dataAmount": "1"} for one in CARDS[:50]]
    script = [
        answer(status="11011", message="卡号不存在"),
        answer({"dataAmountList": half}),
        answer(status="19999", message="调用过于频繁"),
    ]
    async with scripted_server(after_token(script)) as server, onelink_driver(server.url, clock) as driver:
        answers = await driver.query_usage_batch(ACCOUNT, CARDS)
    assert all(isinstance(answers[one.card_id], UsageAnswer) for one in CARDS[:50])
    assert all(isinstance(answers[one.card_id], Throttled) for one in CARDS[50:])


async def test_what_concerns_all_cards_of_a_batch_is_raised(clock: FakeClock) -> None:
    script = [answer(status="19999", message="调用过于频繁")]
    async with scripted_server(after_token(script)) as server, onelink_driver(server.url, clock) as driver:
        with pytest.raises(Throttled):
            await driver.query_usage_batch(ACCOUNT, CARDS)


async def test_a_batch_has_its_bounds(driver: OneLinkDriver, carrier: Carrier) -> None:
    assert await driver.query_usage_batch(ACCOUNT, []) == {}
    assert await driver.query_status_batch(ACCOUNT, []) == {}
    assert await driver.query_realname_batch(ACCOUNT, []) == {}
    with pytest.raises(ValueError, match="at most 100"):
        await driver.query_usage_batch(ACCOUNT, [card(number) for number in range(101)])
    assert carrier.asked == []


async def test_what_the_interface_does_not_have_is_not_asked(driver: OneLinkDriver, carrier: Carrier) -> None:
    for call in (
        driver.query_status_batch(ACCOUNT, CARDS),
        driver.query_realname_batch(ACCOUNT, CARDS),
        driver.list_cards(ACCOUNT, None),
        driver.query_operation(ACCOUNT, CARD, "op-1"),
    ):
        with pytest.raises(NotOffered):
            await call
    assert carrier.asked == []


async def test_an_unknown_card_is_told(clock: FakeClock) -> None:
    async with (
        onelink_carrier(clock, unknown_rate=1.0) as carrier,
        onelink_driver(carrier.url, clock) as driver,
    ):
        for call in (driver.query_usage, driver.query_status, driver.query_realname, driver.query_session):
            with pytest.raises(CardUnknown, match="11011"):
                await call(ACCOUNT, CARD)
        with pytest.raises(CardUnknown):
            await driver.stop(ACCOUNT, CARD, "op-1")


PHONED = CardRef(1, "8986001440012345678", msisdn="1440012345678", by_msisdn=True)


async def test_a_card_is_asked_for_by_its_phone_number_once_that_has_led_to_it(
    driver: OneLinkDriver, carrier: Carrier, clock: FakeClock
) -> None:
    answered = await driver.query_usage(ACCOUNT, PHONED)
    assert answered.used_kb == expected_usage_kb(PHONED.iccid, clock.now(), SEED)
    await driver.query_status(ACCOUNT, PHONED)
    asked = [(path, fields["msisdn"]) for path, fields in carrier.asked if path != TOKEN_PATH]
    assert asked == [
        (onelink.BASIC_INFO_PATH, PHONED.msisdn),
        (onelink.USAGE_PATH, PHONED.msisdn),
        (onelink.BASIC_INFO_PATH, PHONED.msisdn),
        (onelink.STATUS_PATH, PHONED.msisdn),
    ]


@pytest.mark.parametrize("call", ["query_usage", "stop"])
@pytest.mark.parametrize(
    ("item", "expected"),
    [({"iccid": CARD.iccid, "msisdn": PHONED.msisdn}, WrongCard), ({"msisdn": PHONED.msisdn}, BadResponse)],
)
async def test_a_phone_number_that_leads_elsewhere_is_not_used(
    call: str, item: object, expected: type[GatewayError], clock: FakeClock
) -> None:
    async with (
        scripted_server(after_token([answer(item)])) as server,
        onelink_driver(server.url, clock) as driver,
    ):
        arguments = (ACCOUNT, PHONED) if call == "query_usage" else (ACCOUNT, PHONED, "op-1")
        with pytest.raises(expected):
            await getattr(driver, call)(*arguments)
    assert len(server.exchanges) == 2
