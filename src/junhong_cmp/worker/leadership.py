"""The singleton modules of a process that may lead: they are started once, and work only while it leads."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from structlog.contextvars import bound_contextvars

from junhong_cmp.errors import CriticalLoopError
from junhong_cmp.leadership.elector import LeaderElector
from junhong_cmp.leadership.term import Term, TermEnd
from junhong_cmp.lifecycle import Module
from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.roles import ModuleName
from junhong_cmp.worker.singletons import LOOP_TASKS, SingletonModule

_TASK: Final = "worker:leadership"

BuildLoops = Callable[[Term], Sequence[SingletonModule]]
"""Builds the loops of one term, in start order."""


class Leadership:
    """A leadership runs the loops of each term this process wins, and none in between.

    To the module group its modules look like any others. It contends once all of them have started; it
    stops each loop when its module stops; and it gives the lease up after the last of them, so before the
    modules that started earlier. A term that ends by itself stops the loops, last first, and the process
    contends again.
    """

    def __init__(
        self,
        elector: LeaderElector,
        build_loops: BuildLoops,
        *,
        on_failure: Callable[[CriticalLoopError], None],
    ) -> None:
        self._elector = elector
        self._build_loops = build_loops
        self._watch = LoopWatch(_TASK, on_failure)
        self._joined: set[ModuleName] = set()
        self._leaving = False
        self._loops: list[SingletonModule] = []
        self._changing = asyncio.Lock()
        self._term: Term | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def elector(self) -> LeaderElector:
        """Who contends for this process."""
        return self._elector

    def modules(self) -> dict[ModuleName, Module]:
        """Return what the module group starts and stops."""
        return {name: LedModule(name, self) for name in LOOP_TASKS}

    async def join(self, name: ModuleName) -> None:
        """Take a module in; with the last one, contend."""
        self._joined.add(name)
        if self._joined == set(LOOP_TASKS):
            self._elector.start()
            self._serving = asyncio.create_task(self._serve(), name=_TASK)
            self._watch.begin()

    async def leave(self, name: ModuleName) -> None:
        """Stop a module's loop if it runs; with the last one, give the lease up."""
        self._leaving = True
        self._watch.end()
        try:
            async with self._changing:
                for loop in [loop for loop in self._loops if loop.name == name]:
                    self._loops.remove(loop)
                    await loop.stop()
        finally:
            self._joined.discard(name)
            if not self._joined:
                await self._end()

    async def _serve(self) -> None:
        while True:
            self._term = term = await self._elector.next_term()
            ended = asyncio.Event()
            async with self._changing:
                if self._leaving:
                    return
                await self._start_loops(term)
            term.listen(partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set))
            await ended.wait()
            async with self._changing:
                if self._leaving:
                    return
                await self._stop_loops()
                self._term = None
                self._elector.close_term()

    async def _start_loops(self, term: Term) -> None:
        with bound_contextvars(term=term.epoch):  # the loops' tasks inherit it: every record says its term
            for loop in self._build_loops(term):
                await loop.start()
                self._loops.append(loop)

    async def _stop_loops(self) -> None:
        errors: list[Exception] = []
        while self._loops:
            try:
                await self._loops.pop().stop()
            except Exception as error:  # noqa: BLE001 - raised below, after the rest has stopped
                errors.append(error)
        if errors:
            raise ExceptionGroup("任期结束时部分循环停止失败", errors)

    async def _end(self) -> None:
        """Release the lease; nothing runs under it any more."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait({self._serving})
        if self._term is not None:
            self._term.end(TermEnd.RESIGNED)
        await self._elector.stop()


class LedModule:
    """A led module starts and stops like any other; its loop runs only while this process leads."""

    def __init__(self, name: ModuleName, leadership: Leadership) -> None:
        self.name = name
        self._leadership = leadership

    async def start(self) -> None:
        """Be ready to work once this process leads."""
        await self._leadership.join(self.name)

    async def stop(self) -> None:
        """Stop working, and never work again."""
        await self._leadership.leave(self.name)
