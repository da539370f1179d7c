import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from tests.waiting import FakeClock, wait_until

from junhong_cmp.gateway.bulkhead import Bulkhead
from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    BreakerOpen,
    CardResting,
    CardUnknown,
    GatewayError,
    GatewayNotConfigured,
    NotOffered,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.limits.breaker import BreakerSettings
from junhong_cmp.gateway.limits.breakers import AccountBreakers
from junhong_cmp.gateway.limits.call_limits import CallLimits

ACCOUNT = GatewayAccount(1, "a", concurrency=1)
CARD = CardRef(1, "89860012345678900017")
REST = timedelta(minutes=3)


@dataclass
class Rests:
    """The rests of cards, in memory."""

    held: dict[int, str] = field(default_factory=dict)

    async def take(self, card: CardRef, request_id: str, rest: timedelta) -> None:
        if card.card_id in self.held:
            raise CardResting("此卡变更过于频繁", rest)
        self.held[card.card_id] = request_id

    async def give_back(self, card: CardRef, request_id: str) -> None:
        if self.held.get(card.card_id) == request_id:
            del self.held[card.card_id]


def limits(rests: Rests | None = None) -> CallLimits:
    breakers = AccountBreakers(BreakerSettings(min_calls=2), FakeClock())
    return CallLimits(Bulkhead(patience=timedelta(seconds=5)), breakers, rests or Rests())


@asynccontextmanager
async def changing(admitted: CallLimits, request_id: str) -> AsyncIterator[None]:
    async with admitted.change(CARD, request_id, REST), admitted.call(ACCOUNT):
        yield


async def test_a_caller_who_waited_for_a_place_learns_that_the_breaker_has_opened() -> None:
    admitted = limits()
    hold = asyncio.Event()

    async def fail() -> None:
        async with admitted.call(ACCOUNT):
            await hold.wait()
            raise Transient("网关故障")

    callers = [asyncio.create_task(fail()) for _ in range(10)]
    await asyncio.sleep(0)
    hold.set()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Transient] * 2 + [BreakerOpen] * 8


@pytest.mark.parametrize(
    ("error", "rests"),
    [
        (Transient("x"), True),
        (Transient("x", maybe_executed=False), False),
        (BadResponse("x"), True),
        (AlreadyDone("x"), True),
        (BadRequest("x"), True),
        (CardUnknown("x"), True),
        (Throttled("x"), False),
        (AuthRejected("x"), False),
        (GatewayNotConfigured("x"), False),
        (NotOffered("x"), False),
    ],
    ids=lambda value: "" if isinstance(value, bool) else type(value).__name__,
)
async def test_a_card_rests_unless_the_carrier_certainly_changed_nothing(
    error: GatewayError, *, rests: bool
) -> None:
    kept = Rests()
    with pytest.raises(type(error)):
        async with changing(limits(kept), "op-1"):
            raise error
    assert (CARD.card_id in kept.held) is rests


async def test_a_change_that_was_made_or_given_up_on_leaves_the_card_resting() -> None:
    kept = Rests()
    async with changing(limits(kept), "op-1"):
        pass
    assert kept.held == {1: "op-1"}
    kept.held.clear()
    begun = asyncio.Event()

    async def change() -> None:
        async with changing(limits(kept), "op-2"):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(change())
    await wait_until(begun.is_set, description="the change is under way")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert kept.held == {1: "op-2"}


async def test_a_resting_card_takes_no_place_and_keeps_its_holder() -> None:
    kept = Rests({1: "op-1"})
    admitted = limits(kept)
    async with admitted.call(ACCOUNT):  # the only place is taken: whoever wanted it would have to wait
        with pytest.raises(CardResting):
            async with changing(admitted, "op-2"):
                pytest.fail("it rests")
    assert kept.held == {1: "op-1"}
