"""Ending background tasks for certain."""

import asyncio
from typing import Any, Final

_ASK_AGAIN_S: Final = 1.0


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Return when the task has ended; a cancellation that got lost inside a library is asked for again.

    Raises:
        Exception: what the task died of, if it was not the cancellation.

    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_ASK_AGAIN_S)
    if not task.cancelled():
        task.result()
