"""Noticing that a loop which must not end has ended."""

import asyncio
from collections.abc import Callable
from typing import Any

from junhong_cmp.errors import CriticalLoopError


class LoopWatch:
    """A loop watch knows a module's long-running tasks by their name and reports one that ends."""

    def __init__(self, task_name: str, on_failure: Callable[[CriticalLoopError], None]) -> None:
        self._task_name = task_name
        self._on_failure = on_failure
        self._watching = False
        self._reported: BaseException | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    def begin(self) -> None:
        """Watch the tasks that run now; call it right after the module's start."""
        self._watching = True
        self._tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith(self._task_name)]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    def end(self) -> None:
        """Stop watching; call it before the module is told to stop."""
        self._watching = False

    def cancel_again(self) -> None:
        """Cancel what still runs of the module's loops."""
        for task in self._tasks:
            task.cancel()

    def has_reported(self, error: BaseException) -> bool:
        """Tell whether ``error`` is the one a loop died of, which is then no news any more."""
        return error is self._reported

    def _ended(self, task: asyncio.Task[object]) -> None:
        if not self._watching:
            return
        error = None if task.cancelled() else task.exception()
        reason = f"{type(error).__name__}：{error}" if error is not None else "意外结束"
        failure = CriticalLoopError(f"{task.get_name()} {reason}")
        failure.__cause__ = self._reported = error
        self._on_failure(failure)
