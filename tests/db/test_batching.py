import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.db.batching import BatcherClosedError, BatchSizeError, MicroBatcher


class Squarer:
    """Squares numbers in batches; negative ones spoil the whole batch, as in one SQL statement."""

    def __init__(self) -> None:
        self.flushed: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.down = False

    async def flush(self, items: Sequence[int]) -> list[int | Exception]:
        self.flushed.append(list(items))
        await self.gate.wait()
        if self.down:
            raise ConnectionResetError
        if any(item < 0 for item in items):
            raise ValueError(next(item for item in items if item < 0))
        return [KeyError(item) if item == 0 else item * item for item in items]


async def test_what_is_submitted_together_is_flushed_together() -> None:
    squarer = Squarer()
    batcher = MicroBatcher(squarer.flush, name="squares")
    assert await asyncio.gather(*(batcher.submit(n) for n in range(1, 5))) == [1, 4, 9, 16]
    assert squarer.flushed == [[1, 2, 3, 4]]


async def test_items_gather_while_a_flush_runs() -> None:
    squarer = Squarer()
    squarer.gate.clear()
    batcher = MicroBatcher(squarer.flush, max_size=3, name="squares")
    first = asyncio.create_task(batcher.submit(1))
    await wait_until(lambda: squarer.flushed, description="the first flush")
    rest = [asyncio.create_task(batcher.submit(n)) for n in range(2, 6)]
    await asyncio.sleep(0)
    squarer.gate.set()
    assert await asyncio.gather(first, *rest) == [1, 4, 9, 16, 25]
    assert squarer.flushed == [[1], [2, 3, 4], [5]]


async def test_a_bad_item_fails_alone() -> None:
    squarer = Squarer()
    batcher = MicroBatcher(squarer.flush, name="squares")
    with capture_logs() as logs:
        results = await batcher.submit_many([1, 2, -3, 4, 0, 6])
    assert results[:2] + results[3:4] + results[5:] == [1, 4, 16, 36]
    assert isinstance(results[2], ValueError)
    assert isinstance(results[4], KeyError)
    assert [entry["event"] for entry in logs] == ["批处理失败，拆分后重试"]


async def test_an_outage_fails_the_batch_without_more_tries() -> None:
    squarer = Squarer()
    squarer.down = True
    batcher = MicroBatcher(squarer.flush, name="squares")
    results = await batcher.submit_many(range(1, 9))
    assert all(isinstance(result, ConnectionResetError) for result in results)
    assert len(squarer.flushed) == 1
    squarer.down = False
    assert await batcher.submit(5) == 25


async def test_a_caller_cancelled_before_the_flush_takes_its_item_out() -> None:
    squarer = Squarer()
    squarer.gate.clear()
    batcher = MicroBatcher(squarer.flush, name="squares")
    tasks = [asyncio.create_task(batcher.submit(n)) for n in (1, 2)]
    await wait_until(lambda: squarer.flushed, description="the first flush")
    waiting = [asyncio.create_task(batcher.submit(n)) for n in (3, 4)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    waiting[0].cancel()
    squarer.gate.set()
    results = await asyncio.gather(*tasks, *waiting, return_exceptions=True)
    assert [results[1], results[3]] == [4, 16]
    assert isinstance(results[0], asyncio.CancelledError)
    assert isinstance(results[2], asyncio.CancelledError)
    assert squarer.flushed == [[1, 2], [4]]


async def test_close_drains_and_then_refuses() -> None:
    squarer = Squarer()
    batcher = MicroBatcher(squarer.flush, max_size=2, name="squares")
    tasks = [asyncio.create_task(batcher.submit(n)) for n in range(1, 6)]
    await asyncio.sleep(0)
    await batcher.close()
    assert [task.result() for task in tasks] == [1, 4, 9, 16, 25]
    with pytest.raises(BatcherClosedError, match="squares"):
        await batcher.submit(6)
    await batcher.close()


async def test_a_cancelled_close_gives_up_what_still_waits() -> None:
    squarer = Squarer()
    squarer.gate.clear()
    batcher = MicroBatcher(squarer.flush, max_size=1, name="squares")
    tasks = [asyncio.create_task(batcher.submit(n)) for n in (1, 2)]
    await wait_until(lambda: squarer.flushed, description="the first flush")
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    closing.cancel()
    results = await asyncio.gather(*tasks, closing, return_exceptions=True)
    assert [type(result) for result in results[:2]] == [BatcherClosedError, BatcherClosedError]
    assert isinstance(results[2], asyncio.CancelledError)


async def test_a_flush_that_loses_count_is_an_error_for_all() -> None:
    async def flush(items: Sequence[int]) -> list[int]:
        return list(items[1:])

    results = await MicroBatcher(flush, name="short").submit_many([1, 2])
    assert [type(result) for result in results] == [BatchSizeError, BatchSizeError]


def test_batches_hold_something() -> None:
    with pytest.raises(ValueError, match="0"):
        MicroBatcher(Squarer.flush, max_size=0, name="none")  # type: ignore[arg-type]  # never called


@settings(deadline=None, max_examples=60)
@given(
    items=st.lists(st.integers(-3, 9), max_size=40),
    cancelled=st.sets(st.integers(0, 39)),
    max_size=st.integers(1, 8),
)
def test_everybody_gets_the_answer_to_their_own_question(
    items: list[int], cancelled: set[int], max_size: int
) -> None:
    async def run() -> None:
        squarer = Squarer()
        batcher = MicroBatcher(squarer.flush, max_size=max_size, name="squares")
        tasks = []
        for index, item in enumerate(items):
            tasks.append(asyncio.create_task(batcher.submit(item)))
            if index % 5 == 0:
                await asyncio.sleep(0)
        for index in cancelled & set(range(len(tasks))):
            tasks[index].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.close()
        for index, (item, result) in enumerate(zip(items, results, strict=True)):
            if index in cancelled and isinstance(result, asyncio.CancelledError):
                continue
            if item < 0:
                assert isinstance(result, ValueError)
                assert result.args == (item,)
            elif item == 0:
                assert isinstance(result, KeyError)
            else:
                assert result == item * item
        assert all(len(batch) <= max_size for batch in squarer.flushed)

    asyncio.run(run())
