"""Everything that stands between a caller and a driver, in its order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from junhong_cmp.gateway.bulkhead import Bulkhead
from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.errors import (
    AccountPausing,
    GatewayError,
    GatewayNotConfigured,
    NotOffered,
    Transient,
)
from junhong_cmp.gateway.limits.breakers import AccountBreakers
from junhong_cmp.gateway.limits.change_gap import ChangeGap


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Call limits admit calls: one of the account's places first, then its breaker.

    In this order a caller who waited for a place is told of a breaker that opened meanwhile.
    """

    bulkhead: Bulkhead
    breakers: AccountBreakers
    change_gap: ChangeGap

    @asynccontextmanager
    async def call(self, account: GatewayAccount) -> AsyncIterator[None]:
        """Hold a place for one call, and learn from how it ends."""
        async with self.bulkhead.slot(account):
            with self.breakers.guard(account):
                yield

    @asynccontextmanager
    async def change(self, card: CardRef, request_id: str, rest: timedelta) -> AsyncIterator[None]:
        """Hold the card's right to be changed; it goes back only if the carrier has changed nothing."""
        await self.change_gap.take(card, request_id, rest)
        try:
            yield
        except GatewayError as error:
            if _changed_nothing(error):
                await self.change_gap.give_back(card, request_id)
            raise


def _changed_nothing(error: GatewayError) -> bool:
    if isinstance(error, Transient):
        return not error.maybe_executed
    return isinstance(error, AccountPausing | GatewayNotConfigured | NotOffered)
