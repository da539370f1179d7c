"""Resident memory of a process and its children, watched while something runs."""

import asyncio
import contextlib
from typing import Final, Self

import psutil

_MIB: Final = 1024 * 1024
_EVERY_S: Final = 0.5


class MemoryWatch:
    """A memory watch samples twice a second while its block lasts; ``peak_mb`` is the largest sum."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.peak_mb = 0.0
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, resident_mb(self._process))
            await asyncio.sleep(_EVERY_S)


def resident_mb(process: psutil.Process) -> float:
    """Return what a process and its children hold now."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += one.memory_info().rss
    return total / _MIB
