"""What lets the steps of an import overlap: the next rows are read and the last cards announced meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar

from junhong_cmp.cards.model import Card

T = TypeVar("T")


@asynccontextmanager
async def read_ahead(items: AsyncGenerator[T, None]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Give out what ``items`` yields, with the next one being made while one is at work.

    Leaving the block ends the generator, wherever it is.
    """
    ahead = _ReadAhead(items)
    try:
        yield ahead
    finally:
        await ahead.close()


class _ReadAhead(Generic[T]):
    """A read-ahead is one item in front of who uses it."""

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items
        self._next = asyncio.create_task(_take(items))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        found = await self._next
        if not found:
            raise StopAsyncIteration
        self._next = asyncio.create_task(_take(self._items))
        return found[0]

    async def close(self) -> None:
        await _end(self._next)
        await self._items.aclose()


async def _take(items: AsyncGenerator[T, None]) -> tuple[T, ...]:
    """Return the next item in a tuple, empty at the end: a task can't raise StopAsyncIteration."""
    async for item in items:
        return (item,)
    return ()


class Announcing:
    """An announcing tells of new cards beside the next write, one announcement at a time.

    So when a process dies, at most the cards of the last two chunks were not told of. The announcement
    under way is done when its block is left, also by an error: its cards are committed. Only a
    cancellation breaks it off.
    """

    def __init__(self, tell: Callable[[Sequence[Card]], Awaitable[object]]) -> None:
        self._tell = tell
        self._under_way: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.settle()
        elif self._under_way is not None:
            if isinstance(error, Exception):
                await _finish(self._under_way)
            await _end(self._under_way)

    async def hand(self, cards: Sequence[Card]) -> None:
        """Begin to tell of ``cards`` once the announcement before is done; raises what that raised."""
        await self.settle()
        if cards:
            self._under_way = asyncio.create_task(self._announce(cards))

    async def settle(self) -> None:
        """Wait for the announcement that is under way; raises what it raised."""
        if self._under_way is not None:
            await self._under_way
            self._under_way = None

    async def _announce(self, cards: Sequence[Card]) -> None:
        await self._tell(cards)


async def _finish(task: asyncio.Task[T]) -> None:
    """Wait until a task has ended, however it does; a cancellation meanwhile ends it too."""
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await _end(task)
        raise


async def _end(task: asyncio.Task[T]) -> None:
    """Cancel a task and wait until it has ended; nobody wants what it gives or raises any more."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # looked at, so that it is not reported as forgotten
