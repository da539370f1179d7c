"""Many small requests, few round trips."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeAlias, TypeVar

import structlog

from junhong_cmp.db.retrying import is_outage
from junhong_cmp.errors import JunhongError

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")
R = TypeVar("R")

_Entry: TypeAlias = tuple[T, asyncio.Future[R]]


class BatcherClosedError(JunhongError):
    """The batcher takes no more items: its owner is stopping."""


class BatchSizeError(JunhongError):
    """A flush returned fewer or more results than it was given items."""


class MicroBatcher(Generic[T, R]):
    """A micro-batcher gathers items while one flush runs and sends them off in the next.

    An idle batcher flushes in the same turn of the event loop, so batching costs no latency
    and grows with the load. ``flush`` returns one result (or exception) per item, in order.
    When it raises, the batch is halved until the item at fault is alone: its neighbours
    succeed. Only an outage, which is nobody's fault, fails the whole batch at once.
    ``flush`` must therefore leave nothing behind when it raises, e.g. be one transaction.
    """

    def __init__(
        self,
        flush: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
        *,
        max_size: int = 500,
        name: str,
    ) -> None:
        if max_size < 1:
            raise ValueError(max_size)
        self._flush = flush
        self._max_size = max_size
        self._name = name
        self._waiting: deque[_Entry[T, R]] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, item: T) -> R:
        """Return the item's result or raise its exception.

        A cancelled caller takes its item out, unless the flush with it has begun: that
        one runs to its end, for the sake of the others in it.
        """
        return await self._put(item)

    def submit_soon(self, item: T) -> asyncio.Future[R]:
        """Put the item into the next flush without waiting for it; the future tells its outcome."""
        return self._put(item)

    async def submit_many(self, items: Iterable[T]) -> list[R | Exception]:
        """Return each item's result or exception, in order."""
        futures = [self._put(item) for item in items]
        results: list[R | Exception] = []
        for result in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result
            results.append(result)
        return results

    async def close(self) -> None:
        """Refuse new items and return when those taken are done; cancelled, it gives them up."""
        self._closed = True
        if self._flushing is not None:
            await self._flushing

    def _put(self, item: T) -> asyncio.Future[R]:
        if self._closed:
            raise BatcherClosedError(f"批处理器已关闭：{self._name}")
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._run(), name=f"batch:{self._name}")
        return future

    async def _run(self) -> None:
        batch: list[_Entry[T, R]] = []
        try:
            while batch := self._take():
                await self._settle(batch)
        finally:
            self._flushing = None
            # Somebody still waits only when this task itself was cancelled.
            for _, future in (*batch, *self._waiting):
                if not future.done():
                    future.set_exception(BatcherClosedError(f"批处理器已中止：{self._name}"))
                    future.exception()  # its caller may be cancelled as well: no complaint then
            self._waiting.clear()

    def _take(self) -> list[_Entry[T, R]]:
        batch: list[_Entry[T, R]] = []
        while self._waiting and len(batch) < self._max_size:
            entry = self._waiting.popleft()
            if not entry[1].done():  # its caller was cancelled
                batch.append(entry)
        return batch

    async def _settle(self, batch: Sequence[_Entry[T, R]], *, halved: bool = False) -> None:
        try:
            results = await self._flush([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to those who wait for it
            if len(batch) == 1 or is_outage(error):
                results = [error] * len(batch)
            else:
                await self._halve(batch, error, halved=halved)
                return
        if len(results) != len(batch):
            results = [BatchSizeError(f"{self._name}：{len(batch)} 项得到 {len(results)} 个结果")] * len(
                batch
            )
        for (_, future), result in zip(batch, results, strict=True):
            _resolve(future, result)

    async def _halve(self, batch: Sequence[_Entry[T, R]], error: Exception, *, halved: bool) -> None:
        if not halved:
            log.warning(
                "批处理失败，拆分后重试", batcher=self._name, items=len(batch), error=type(error).__name__
            )
        middle = len(batch) // 2
        await self._settle(batch[:middle], halved=True)
        await self._settle(batch[middle:], halved=True)


def _resolve(future: asyncio.Future[R], result: R | Exception) -> None:
    if future.done():  # its caller was cancelled while the flush ran
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
