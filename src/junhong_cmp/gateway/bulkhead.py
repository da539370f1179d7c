"""The wall between accounts: a slow carrier fills its own slots, never anybody else's."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import Saturated


class Bulkhead:
    """A bulkhead bounds every account's calls in flight, and so its connections.

    A call that finds no slot within ``patience`` is throttled by us: the account is slow, the card is fine.
    """

    def __init__(self, *, patience: timedelta) -> None:
        self._patience_s = patience.total_seconds()
        self._slots: dict[int, tuple[int, asyncio.Semaphore]] = {}

    def slot(self, account: GatewayAccount) -> AbstractAsyncContextManager[None]:
        """Hold one of the account's slots; a changed limit counts for the calls that come after it."""
        return _HeldSlot(self._slots_of(account), self._patience_s)

    def _slots_of(self, account: GatewayAccount) -> asyncio.Semaphore:
        limit = max(account.concurrency, 1)
        held = self._slots.get(account.id)
        if held is None or held[0] != limit:
            held = self._slots[account.id] = (limit, asyncio.Semaphore(limit))
        return held[1]


class _HeldSlot:
    """A held slot is one of an account's, for the time of one call; not a generator, which takes longer."""

    __slots__ = ("_patience_s", "_slots")

    def __init__(self, slots: asyncio.Semaphore, patience_s: float) -> None:
        self._slots = slots
        self._patience_s = patience_s

    async def __aenter__(self) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(self._patience_s):
                await self._slots.acquire()
        except TimeoutError as error:
            raise Saturated("账号的并发调用已满，稍后再试") from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._slots.release()
