"""Loops only one process of a fleet should run."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.roles import ModuleName

CANCEL_AGAIN_S: Final = 0.5
"""A library may swallow a cancellation that arrives together with a reply; then it is asked again."""

LOOP_TASKS: Final[Mapping[ModuleName, str]] = {
    ModuleName.POLLING_INITIALIZER: "polling:initializer",
    ModuleName.POLLING_SCHEDULER: "polling:scheduler",
    ModuleName.ASYNQ_SCHEDULER: "asynq-scheduler",
}
"""The singleton modules in start order, and the names their background tasks run under."""


class Loop(Protocol):
    """A part that runs in the background between its start and its stop."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End."""
        ...


class SingletonModule:
    """A singleton module runs a loop only one process of a fleet should run, and reports its death."""

    def __init__(self, name: ModuleName, loop: Loop, watch: LoopWatch) -> None:
        self.name = name
        self._loop = loop
        self._watch = watch

    async def start(self) -> None:
        """Start the loop and watch it."""
        await self._loop.start()
        self._watch.begin()

    async def stop(self) -> None:
        """Stop watching, then the loop."""
        self._watch.end()
        stop = asyncio.create_task(self._loop.stop(), name=f"stop:{self.name}")
        try:
            while not (await asyncio.wait({stop}, timeout=CANCEL_AGAIN_S))[0]:
                self._watch.cancel_again()
        except asyncio.CancelledError:
            stop.cancel()
            raise
        error = stop.exception()
        if error is not None and not self._watch.has_reported(error):
            raise error
