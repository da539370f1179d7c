"""What every gateway client must do, asked of the real one and of the fake one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.gateway import FakeGateway

from junhong_cmp.cards.model import CardStatus, RealNameStatus
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayClient
from junhong_cmp.gateway.errors import AlreadyDone, CardUnknown
from junhong_cmp.gateway.http import open_http_gateway
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig

ACCOUNT = GatewayAccount(id=1, code="demo")
CARD = CardRef(1, "89860000000000000001")


async def make_client(kind: str, stack: AsyncExitStack, *, knows_cards: bool) -> GatewayClient:
    if kind == "fake":
        fake = FakeGateway()
        fake.unknown = set() if knows_cards else {CARD.card_id}
        return fake
    credential = Credential("demo", "canary-secret-of-the-tests")
    simulator = CarrierSimulator(
        SimulatorConfig(credential=credential, unknown_rate=0.0 if knows_cards else 1.0)
    )
    await simulator.start()
    stack.push_async_callback(simulator.stop)
    client = open_http_gateway(
        base_url=simulator.url, credentials={}, default_credential=credential, allow_http=True
    )
    await client.open()
    stack.push_async_callback(client.close)
    return client


@pytest.fixture(params=["fake", "http"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def client(kind: str) -> AsyncIterator[GatewayClient]:
    async with AsyncExitStack() as stack:
        yield await make_client(kind, stack, knows_cards=True)


async def test_answers_echo_the_card_and_carry_plausible_values(client: GatewayClient) -> None:
    usage = await client.query_usage(ACCOUNT, CARD)
    status = await client.query_status(ACCOUNT, CARD)
    real_name = await client.query_realname(ACCOUNT, CARD)
    assert {usage.iccid, status.iccid, real_name.iccid} == {CARD.iccid}
    assert usage.used_kb >= 0
    assert CardStatus(status.status)
    assert RealNameStatus(real_name.status)
    for at in (usage.reading_at, status.at, real_name.at):
        assert at.tzinfo is not None
        assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)


async def test_a_batch_answers_for_every_card(client: GatewayClient) -> None:
    cards = [CardRef(number, f"8986000000000000000{number}") for number in range(1, 4)]
    for ask in (client.query_usage_batch, client.query_status_batch, client.query_realname_batch):
        answers = await ask(ACCOUNT, cards)
        assert set(answers) == {1, 2, 3}
        assert {number: getattr(answer, "iccid", None) for number, answer in answers.items()} == {
            card.card_id: card.iccid for card in cards
        }
        assert await ask(ACCOUNT, []) == {}


async def test_one_unknown_card_of_a_batch_is_its_own_affair(kind: str) -> None:
    async with AsyncExitStack() as stack:
        client = await make_client(kind, stack, knows_cards=False)
        answers = await client.query_status_batch(ACCOUNT, [CARD])
        assert isinstance(answers[CARD.card_id], CardUnknown)


async def test_a_batch_is_as_large_as_the_account_and_the_driver_allow(client: GatewayClient) -> None:
    assert client.batch_size(ACCOUNT, GatewayCall.USAGE) == 1
    assert client.batch_size(ACCOUNT._replace(batch_size=1000), GatewayCall.USAGE) == 100


async def test_sessions_and_lists_of_cards_are_told(client: GatewayClient) -> None:
    session = await client.query_session(ACCOUNT, CARD)
    assert session.iccid == CARD.iccid
    assert session.at.tzinfo is not None
    page = await client.list_cards(ACCOUNT, None)
    assert (list(page.cards), page.next_cursor) == ([], None)


async def test_calls_may_run_side_by_side(client: GatewayClient) -> None:
    cards = [CardRef(number, f"8986000000000000{number:04d}") for number in range(1, 51)]
    answers = await asyncio.gather(*(client.query_usage(ACCOUNT, card) for card in cards))
    assert [answer.iccid for answer in answers] == [card.iccid for card in cards]


async def test_a_card_nobody_knows(kind: str) -> None:
    async with AsyncExitStack() as stack:
        client = await make_client(kind, stack, knows_cards=False)
        with pytest.raises(CardUnknown):
            await client.query_usage(ACCOUNT, CARD)


async def test_stopping_twice_is_already_done_and_resuming_starts_again(client: GatewayClient) -> None:
    answer = await client.stop(ACCOUNT, CARD, "r-0001")
    assert answer.request_id == "r-0001"
    with pytest.raises(AlreadyDone):
        await client.stop(ACCOUNT, CARD, "r-0002")
    await client.resume(ACCOUNT, CARD, "r-0003")
    found = await client.query_operation(ACCOUNT, CARD, "r-0003")
    assert found.state is OperationState.DONE
    unknown = await client.query_operation(ACCOUNT, CARD, "r-0404")
    assert unknown.state is OperationState.UNKNOWN
