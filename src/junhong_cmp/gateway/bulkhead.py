"""The wall between accounts: a slow carrier fills its own slots, never anybody else's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from junhong_cmp.gateway.client import GatewayAccount
from junhong_cmp.gateway.errors import Throttled


class Bulkhead:
    """A bulkhead bounds every account's calls in flight, and so its connections.

    A call that finds no slot within ``patience`` is throttled by us: the account is slow, the card is fine.
    """

    def __init__(self, *, patience: timedelta) -> None:
        self._patience_s = patience.total_seconds()
        self._slots: dict[int, tuple[int, asyncio.Semaphore]] = {}

    @asynccontextmanager
    async def slot(self, account: GatewayAccount) -> AsyncIterator[None]:
        """Hold one of the account's slots; a changed limit counts for the calls that come after it."""
        slots = self._slots_of(account)
        if slots.locked():
            try:
                async with asyncio.timeout(self._patience_s):
                    await slots.acquire()
            except TimeoutError as error:
                raise Throttled("账号的并发调用已满，稍后再试") from error
        else:
            await slots.acquire()
        try:
            yield
        finally:
            slots.release()

    def _slots_of(self, account: GatewayAccount) -> asyncio.Semaphore:
        limit = max(account.concurrency, 1)
        held = self._slots.get(account.id)
        if held is None or held[0] != limit:
            held = self._slots[account.id] = (limit, asyncio.Semaphore(limit))
        return held[1]
