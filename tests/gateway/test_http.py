import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from structlog.testing import capture_logs
from tests.gateway.scripted_server import Exchange, always, json_answer, scripted_server
from tests.waiting import wait_until

from junhong_cmp.errors import ConfigError
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayClient
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BreakerOpen,
    CardUnknown,
    GatewayNotConfigured,
    Throttled,
    Transient,
    WrongCard,
)
from junhong_cmp.gateway.http import HttpGateway, open_http_gateway
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig
from junhong_cmp.gateway.simulator_cards import CardBook, expected_usage_kb

CARD = CardRef(1, "89860012345678900017")
SEED = 7


@asynccontextmanager
async def client_of(url: str, credential: Credential) -> AsyncIterator[HttpGateway]:
    gateway = open_http_gateway(base_url=url, credentials={}, default_credential=credential, allow_http=True)
    await gateway.open()
    try:
        yield gateway
    finally:
        await gateway.close()


@asynccontextmanager
async def simulated(config: SimulatorConfig) -> AsyncIterator[HttpGateway]:
    simulator = CarrierSimulator(config)
    await simulator.start()
    try:
        async with client_of(simulator.url, config.credential) as gateway:
            yield gateway
    finally:
        await simulator.stop()


def active_card(seed: int = SEED) -> CardRef:
    book = CardBook(seed=seed, unknown_rate=0, operation_delay=timedelta(0))
    numbers = (f"8986001234567{number:07d}" for number in range(100))
    now = datetime.now(UTC)
    return CardRef(1, next(iccid for iccid in numbers if book.status(iccid, now) == "active"))


async def test_usage_is_what_the_carrier_computes_for_that_instant(
    gateway: GatewayClient, account: GatewayAccount
) -> None:
    answer = await gateway.query_usage(account, CARD)
    assert answer.iccid == CARD.iccid
    assert answer.used_kb == expected_usage_kb(CARD.iccid, answer.reading_at, SEED)
    assert abs(datetime.now(UTC) - answer.reading_at) < timedelta(seconds=10)


async def test_a_batch_brings_each_card_its_own_answer(
    gateway: GatewayClient, account: GatewayAccount
) -> None:
    cards = [CardRef(number, f"8986001234567{number:07d}") for number in range(100)]
    answers = await gateway.query_usage_batch(account, cards)
    assert answers.keys() == {card.card_id for card in cards}
    for card in cards:
        answer = answers[card.card_id]
        assert not isinstance(answer, Exception)
        assert answer.used_kb == expected_usage_kb(card.iccid, answer.reading_at, SEED)
    assert await gateway.query_usage_batch(account, []) == {}


async def test_more_than_a_batch_is_the_callers_mistake(
    gateway: GatewayClient, account: GatewayAccount
) -> None:
    cards: Sequence[CardRef] = [CardRef(number, f"8986001234567{number:07d}") for number in range(101)]
    with pytest.raises(ValueError, match="100"):
        await gateway.query_usage_batch(account, cards)


async def test_state_and_real_name_are_told(gateway: GatewayClient, account: GatewayAccount) -> None:
    status = await gateway.query_status(account, active_card())
    assert (status.status, status.raw) == ("active", "2 已激活")
    realname = await gateway.query_realname(account, CARD)
    assert realname.status in {"verified", "unverified", "not_required"}


async def test_batches_tell_of_state_and_real_name_what_single_calls_do(
    gateway: GatewayClient, account: GatewayAccount
) -> None:
    cards = [CardRef(number, f"8986001234567{number:07d}") for number in range(100)]
    states = await gateway.query_status_batch(account, cards)
    names = await gateway.query_realname_batch(account, cards)
    assert states.keys() == names.keys() == {card.card_id for card in cards}
    for card in cards[:5]:
        state, name = states[card.card_id], names[card.card_id]
        assert not isinstance(state, Exception)
        assert not isinstance(name, Exception)
        assert state.status == (await gateway.query_status(account, card)).status
        assert name.status == (await gateway.query_realname(account, card)).status


async def test_the_session_of_a_card_on_the_network_has_an_address_and_a_beginning(
    gateway: GatewayClient, account: GatewayAccount
) -> None:
    cards = [CardRef(number, f"8986001234567{number:07d}") for number in range(30)]
    sessions = [await gateway.query_session(account, card) for card in cards]
    online = [session for session in sessions if session.online]
    assert 0 < len(online) < len(cards)
    for session in online:
        assert session.ip is not None
        assert ip_address(session.ip).is_private
        assert session.since is not None
        assert session.since <= session.at


async def test_a_batch_is_as_large_as_both_sides_want(account: GatewayAccount) -> None:
    gateway = open_http_gateway(base_url="https://gw.example.com", credentials={}, default_credential=None)
    assert gateway.batch_size(account, GatewayCall.USAGE) == 1
    assert gateway.batch_size(account._replace(batch_size=30), GatewayCall.STATUS) == 30
    assert gateway.batch_size(account._replace(batch_size=5000), GatewayCall.REALNAME) == 100
    assert gateway.batch_size(account._replace(batch_size=-1), GatewayCall.USAGE) == 1
    assert gateway.batch_size(account._replace(batch_size=30, driver="none"), GatewayCall.USAGE) == 1


async def test_a_card_is_stopped_once_and_resumed(gateway: GatewayClient, account: GatewayAccount) -> None:
    card = active_card()
    stopped = await gateway.stop(account, card, "op-1")
    assert (stopped.request_id, stopped.state) == ("op-1", OperationState.DONE)
    assert (await gateway.query_status(account, card)).status == "suspended"
    assert (await gateway.stop(account, card, "op-1")).state is OperationState.DONE, (
        "the same id is the same operation"
    )
    with pytest.raises(AlreadyDone):
        await gateway.stop(account, card, "op-2")
    await gateway.resume(account, card, "op-3")
    assert (await gateway.query_status(account, card)).status == "active"
    assert (await gateway.query_operation(account, card, "op-3")).state is OperationState.DONE
    assert (await gateway.query_operation(account, card, "never-sent")).state is OperationState.UNKNOWN


async def test_an_operation_may_take_its_time(credential: Credential, account: GatewayAccount) -> None:
    config = SimulatorConfig(credential=credential, seed=SEED, operation_delay=timedelta(hours=1))
    card = active_card()
    async with simulated(config) as gateway:
        assert (await gateway.stop(account, card, "op-1")).state is OperationState.PENDING
        assert (await gateway.query_operation(account, card, "op-1")).state is OperationState.PENDING
        assert (await gateway.query_status(account, card)).status == "active"


async def test_a_card_the_carrier_does_not_know(credential: Credential, account: GatewayAccount) -> None:
    async with simulated(SimulatorConfig(credential=credential, unknown_rate=1.0)) as gateway:
        with pytest.raises(CardUnknown, match="没有这张卡"):
            await gateway.query_usage(account, CARD)
        answers = await gateway.query_usage_batch(account, [CARD])
        assert isinstance(answers[CARD.card_id], CardUnknown)


async def test_a_fast_account_is_throttled_for_as_long_as_it_is_told(
    credential: Credential, account: GatewayAccount
) -> None:
    async with simulated(SimulatorConfig(credential=credential, throttle_qps=0.2)) as gateway:
        await gateway.query_usage(account, CARD)
        with pytest.raises(Throttled) as caught:
            await gateway.query_usage(account, CARD)
        assert timedelta(seconds=4) <= caught.value.pause <= timedelta(seconds=5)
        await gateway.query_usage(account._replace(id=2, code="other"), CARD)


async def test_a_wrong_secret_is_refused_without_being_shown(
    simulator: CarrierSimulator, account: GatewayAccount
) -> None:
    async with client_of(simulator.url, Credential("demo", "canary-not-the-secret")) as gateway:
        with pytest.raises(AuthRejected) as caught:
            await gateway.query_usage(account, CARD)
        assert "canary" not in str(caught.value)
        assert caught.value.pause == timedelta(minutes=10)


async def test_another_cards_data_is_refused_and_reported(
    credential: Credential, account: GatewayAccount
) -> None:
    swapped = json_answer(
        {"iccid": "89860012345678900018", "used": 1, "unit": "KB", "reading_at": "2026-01-01T00:00:00Z"}
    )
    async with scripted_server(always(swapped)) as server, client_of(server.url, credential) as gateway:
        with capture_logs() as logs, pytest.raises(WrongCard):
            await gateway.query_usage(account, CARD)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("网关返回了其他卡的数据，已拒绝", "warning")
    ]
    assert logs[0]["card_id"] == CARD.card_id
    assert "8986" not in str(logs)


async def test_an_unknown_driver_is_named(gateway: GatewayClient, account: GatewayAccount) -> None:
    with pytest.raises(GatewayNotConfigured, match="carrier-pigeon"):
        await gateway.query_usage(account._replace(driver="carrier-pigeon"), CARD)


@pytest.mark.parametrize(
    "url", ["http://gw.example.com", "https://", "https://u:canary@gw.example.com", "https://[::1"]
)
def test_a_base_url_that_may_not_be_called_is_a_configuration_error(url: str, credential: Credential) -> None:
    with pytest.raises(ConfigError) as caught:
        open_http_gateway(base_url=url, credentials={}, default_credential=credential)
    assert "canary" not in str(caught.value)


async def test_other_hosts_must_be_listed(gateway: GatewayClient, account: GatewayAccount) -> None:
    with pytest.raises(GatewayNotConfigured, match="允许名单"):
        await gateway.query_usage(account._replace(base_url="http://evil.example.com"), CARD)


async def test_a_slow_carrier_keeps_only_its_own_account_waiting(
    simulator: CarrierSimulator, credential: Credential, account: GatewayAccount
) -> None:
    released = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await released.wait()
        await exchange.send(json_answer({}, status="500 Internal Server Error"))

    async with scripted_server(slow) as server, client_of(simulator.url, credential) as gateway:
        slow_account = account._replace(id=2, code="slow", base_url=server.url, concurrency=3)
        stuck = [asyncio.create_task(gateway.query_usage(slow_account, CARD)) for _ in range(50)]
        await wait_until(lambda: len(server.exchanges) == 3, description="the slow account's slots are full")
        async with asyncio.timeout(5):
            for _ in range(50):
                await gateway.query_usage(account, CARD)
        assert len(server.exchanges) == server.connections == 3
        released.set()
        outcomes = await asyncio.gather(*stuck, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {Transient, BreakerOpen}


async def test_a_carriers_own_key_may_be_as_short_as_it_is_but_signs_nothing_of_ours(
    account: GatewayAccount,
) -> None:
    gateway = open_http_gateway(
        base_url="https://gw.example.com",
        credentials={"cmcc": Credential("app", "canary")},
        default_credential=None,
    )
    with pytest.raises(GatewayNotConfigured, match="太短") as caught:
        await gateway.query_usage(account._replace(credential_ref="cmcc"), CARD)
    assert "canary" not in str(caught.value)
