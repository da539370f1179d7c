"""Singleton modules stop whatever their loops do with a cancellation."""

import asyncio
import contextlib

import pytest
from tests.waiting import wait_until

from junhong_cmp.errors import CriticalLoopError
from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.roles import ModuleName
from junhong_cmp.worker.singletons import SingletonModule

TASK = "polling:scheduler"


class StubbornLoop:
    """A loop that loses its first cancellations, as a client library sometimes does."""

    def __init__(self, *, swallows: int = 0, dies: bool = False) -> None:
        self._swallows = swallows
        self._dies = dies
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name=TASK)

    async def stop(self) -> None:
        assert self._running is not None, "stopped without having been started"
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running

    async def _run(self) -> None:
        if self._dies:
            raise ZeroDivisionError("by zero")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self._swallows:
                    raise
                self._swallows -= 1


def module_of(loop: StubbornLoop, failures: list[CriticalLoopError]) -> SingletonModule:
    return SingletonModule(ModuleName.POLLING_SCHEDULER, loop, LoopWatch(TASK, failures.append))


@pytest.mark.parametrize("swallows", [0, 2])
async def test_a_swallowed_cancellation_is_repeated(swallows: int) -> None:
    failures: list[CriticalLoopError] = []
    module = module_of(StubbornLoop(swallows=swallows), failures)
    await module.start()
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await module.stop()
    assert failures == []


async def test_a_death_that_was_reported_does_not_fail_the_stop_again() -> None:
    failures: list[CriticalLoopError] = []
    module = module_of(StubbornLoop(dies=True), failures)
    await module.start()
    await wait_until(lambda: failures, description="the death was reported")
    await module.stop()
    assert len(failures) == 1


async def test_a_death_during_the_stop_is_raised() -> None:
    failures: list[CriticalLoopError] = []
    module = module_of(StubbornLoop(dies=True), failures)
    await module.start()
    module._watch.end()  # the loop dies after watching has ended
    await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError):
        await module.stop()


async def test_start_and_stop_again_and_again() -> None:
    failures: list[CriticalLoopError] = []
    for _ in range(50):
        module = module_of(StubbornLoop(), failures)
        await module.start()
        await module.stop()
    assert failures == []
