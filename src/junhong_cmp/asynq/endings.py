"""Ending tasks within a time limit."""

import asyncio
from collections.abc import Iterable

_REPEAT_S = 0.05


async def end_tasks(tasks: Iterable[asyncio.Task[None]], patience_s: float = 0.3) -> None:
    """Cancel ``tasks`` and wait for their end, at most ``patience_s``.

    The cancellation is repeated, as a single one can get lost on its way:
    ``asyncio.wait_for`` before Python 3.12 returns normally when what it waits
    for ends in the same moment, and the task goes on.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    left = {task for task in tasks if not task.done()}
    while left and loop.time() < until:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_REPEAT_S)
