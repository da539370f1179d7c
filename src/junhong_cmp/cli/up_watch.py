"""Noticing that a child process of ``junhong up`` has ended though nobody asked it to."""

import asyncio
from collections.abc import Iterable
from functools import partial

from junhong_cmp.embedded.process import ChildProcess
from junhong_cmp.errors import CriticalLoopError


class ChildWatch:
    """A child watch waits for the first of its processes to end."""

    def __init__(self) -> None:
        self._ended: asyncio.Queue[ChildProcess] = asyncio.Queue()
        self._waits: set[asyncio.Task[int]] = set()

    def add(self, processes: Iterable[ChildProcess]) -> None:
        """Watch some more processes."""
        for process in processes:
            wait = asyncio.create_task(process.wait(), name=f"watch-{process.spec.name}")
            self._waits.add(wait)
            wait.add_done_callback(partial(self._note, process))

    async def first_death(self) -> ChildProcess:
        """Return the first process that ended."""
        return await self._ended.get()

    def close(self) -> None:
        """Stop watching: from now on processes end because they are told to."""
        for wait in tuple(self._waits):
            wait.cancel()

    def _note(self, process: ChildProcess, wait: asyncio.Task[int]) -> None:
        self._waits.discard(wait)
        if not wait.cancelled():
            self._ended.put_nowait(process)


def death_error(process: ChildProcess) -> CriticalLoopError:
    """Return the error that says which process died, how, and what it said last."""
    code = process.exit_code
    how = f"被信号 {-code} 终止" if code is not None and code < 0 else f"退出码 {code}"
    tail = process.log_tail() or "（空）"
    return CriticalLoopError(
        f"子进程 {process.spec.name} 意外结束（{how}），其余进程已停止；"
        f"日志 {process.spec.log_path} 的最后几行：\n{tail}"
    )
