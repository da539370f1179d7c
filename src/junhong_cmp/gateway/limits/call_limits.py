"""Everything that stands between a caller and a driver, in its order."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType

from junhong_cmp.gateway.bulkhead import Bulkhead
from junhong_cmp.gateway.client import CardRef, GatewayAccount
from junhong_cmp.gateway.errors import (
    AccountPausing,
    GatewayError,
    GatewayNotConfigured,
    NotOffered,
    Transient,
)
from junhong_cmp.gateway.limits.breaker import Pass
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

    def call(self, account: GatewayAccount) -> AbstractAsyncContextManager[None]:
        """Hold a place for one call, and learn from how it ends."""
        return _AdmittedCall(self, account)

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


class _AdmittedCall:
    """An admitted call holds its place and its leave until it ends; not a generator, which takes longer."""

    __slots__ = ("_account", "_breakers", "_leave", "_slot")

    def __init__(self, limits: CallLimits, account: GatewayAccount) -> None:
        self._account = account
        self._breakers = limits.breakers
        self._slot = limits.bulkhead.slot(account)
        self._leave: Pass | None = None

    async def __aenter__(self) -> None:
        await self._slot.__aenter__()
        try:
            self._leave = self._breakers.ask(self._account)
        except GatewayError as error:
            await self._slot.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._leave is not None:
            self._breakers.settle(self._account, self._leave, error)
        await self._slot.__aexit__(kind, error, trace)


def _changed_nothing(error: GatewayError) -> bool:
    if isinstance(error, Transient):
        return not error.maybe_executed
    return isinstance(error, AccountPausing | GatewayNotConfigured | NotOffered)
