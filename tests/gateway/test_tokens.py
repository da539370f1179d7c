import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from tests.waiting import FakeClock, wait_until

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import AuthRejected, GatewayError, Throttled, Transient
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.tokens import Token, TokenExpiredError, TokenStore

ACCOUNT = GatewayAccount(1, "cmcc-main")
KEY = Credential("app", "canary-password")
HOUR = timedelta(hours=1)


@dataclass
class Carrier:
    """A carrier that gives numbered tokens and takes only those it has not revoked."""

    lifetime: timedelta = HOUR
    fetches: int = 0
    good: set[str] = field(default_factory=set)
    error: GatewayError | None = None
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.hold.set()

    async def fetch(self) -> Token:
        self.fetches += 1
        value = f"token-{self.fetches}"
        await self.hold.wait()
        if self.error is not None:
            raise self.error
        self.good.add(value)
        return Token(value, self.lifetime)

    async def call(self, token: str) -> str:
        await asyncio.sleep(0)
        if token not in self.good:
            raise TokenExpiredError
        return token


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[TokenStore]:
    store = TokenStore(clock)
    yield store
    await store.close()


async def use(store: TokenStore, carrier: Carrier, key: Credential = KEY, account_id: int = 1) -> str:
    account = GatewayAccount(account_id, "a")
    return await store.use(account, key, carrier.fetch, carrier.call)


async def test_one_fetch_serves_everybody_who_waits(store: TokenStore) -> None:
    carrier = Carrier()
    assert set(await asyncio.gather(*(use(store, carrier) for _ in range(200)))) == {"token-1"}
    assert await use(store, carrier) == "token-1"
    assert carrier.fetches == 1


async def test_an_expired_token_is_replaced_once_for_all_who_noticed(store: TokenStore) -> None:
    carrier = Carrier()
    await use(store, carrier)
    carrier.good.clear()
    assert set(await asyncio.gather(*(use(store, carrier) for _ in range(200)))) == {"token-2"}
    assert carrier.fetches == 2


async def test_a_carrier_that_refuses_what_it_just_gave_has_rejected_us(store: TokenStore) -> None:
    carrier = Carrier()

    async def never(_: str) -> str:
        raise TokenExpiredError

    with pytest.raises(AuthRejected):
        await store.use(ACCOUNT, KEY, carrier.fetch, never)
    assert carrier.fetches == 2
    assert await use(store, carrier) == "token-3"


async def test_a_failed_fetch_fails_all_who_wait_and_nobody_after_them(store: TokenStore) -> None:
    carrier = Carrier(error=Throttled("太快"))
    carrier.hold.clear()
    waiting = [asyncio.create_task(use(store, carrier)) for _ in range(50)]
    await wait_until(lambda: carrier.fetches == 1, description="the fetch has begun")
    carrier.hold.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, Throttled) for outcome in outcomes)
    carrier.error = None
    assert await use(store, carrier) == "token-2"


async def test_a_cancelled_waiter_takes_nobody_with_it(store: TokenStore) -> None:
    carrier = Carrier()
    carrier.hold.clear()
    first, second = (asyncio.create_task(use(store, carrier)) for _ in range(2))
    await wait_until(lambda: carrier.fetches == 1, description="the fetch has begun")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    carrier.hold.set()
    assert await second == "token-1"
    assert carrier.fetches == 1


async def test_a_token_is_used_while_its_successor_is_fetched(store: TokenStore, clock: FakeClock) -> None:
    carrier = Carrier()
    await use(store, carrier)
    clock.advance(timedelta(minutes=56))
    carrier.hold.clear()
    assert await use(store, carrier) == "token-1"
    assert await use(store, carrier) == "token-1"
    carrier.hold.set()
    await wait_until(lambda: "token-2" in carrier.good, description="the next token is there")
    assert await use(store, carrier) == "token-2"
    assert carrier.fetches == 2


async def test_a_token_is_not_used_after_its_end(store: TokenStore, clock: FakeClock) -> None:
    carrier = Carrier()
    await use(store, carrier)
    clock.advance(HOUR)
    assert await use(store, carrier) == "token-2"


async def test_an_early_fetch_that_fails_is_told_and_tried_again_later(
    store: TokenStore, clock: FakeClock
) -> None:
    carrier = Carrier()
    await use(store, carrier)
    clock.advance(timedelta(minutes=56))
    carrier.error = Transient("网关故障")
    with capture_logs() as logs:
        for _ in range(5):
            assert await use(store, carrier) == "token-1"
    assert [entry["event"] for entry in logs] == ["网关令牌未能取得"]
    carrier.error = None
    clock.advance(timedelta(seconds=16))
    await use(store, carrier)
    await wait_until(lambda: carrier.fetches == 3, description="it is fetched again")


async def test_accounts_and_credentials_have_tokens_of_their_own(store: TokenStore) -> None:
    carrier = Carrier()
    rotated = Credential("app", "canary-new-password")
    tokens = [await use(store, carrier), await use(store, carrier, rotated)]
    tokens.append(await use(store, carrier, account_id=2))
    assert tokens == ["token-1", "token-2", "token-3"]


async def test_closing_fails_those_who_wait(clock: FakeClock) -> None:
    store, carrier = TokenStore(clock), Carrier()
    carrier.hold.clear()
    waiting = asyncio.create_task(use(store, carrier))
    await wait_until(lambda: carrier.fetches == 1, description="the fetch has begun")
    await store.close()
    with pytest.raises(Transient) as caught:
        await waiting
    assert caught.value.maybe_executed is False


def test_no_repr_shows_a_token() -> None:
    assert "canary" not in repr(Token("canary", HOUR))
