"""Waiting awake for a reply that is near."""

import asyncio
import time
from typing import Any, Final

_SPIN_S: Final = 60e-6
"""More than a near server needs for a small script, and nothing anyone would notice."""
_MAX_SKIPPED: Final = 1024


class ReplySpin:
    """A reply spin lets the loop turn until a reply is there, for some microseconds at most.

    A process that goes to sleep in ``epoll_wait`` lets its core fall asleep too, and waking both up can take
    longer than the server works; Go's scheduler spins for the same reason. Others' callbacks run meanwhile.
    Where replies take longer, by distance or load, the spin would be wasted: after each miss it is left out
    for twice as many replies as before, up to 1024.
    """

    __slots__ = ("_skip", "_skipped")

    def __init__(self) -> None:
        self._skip = 0
        self._skipped = 0

    async def watch(self, reply: asyncio.Future[Any]) -> None:
        """Return when the reply is there, or when it is better to sleep; awaiting it is left to the caller.

        A cancelled caller takes its future with it, so that a late failure of it is nobody's unread error.
        """
        if self._skipped < self._skip:
            self._skipped += 1
            return
        end = time.perf_counter() + _SPIN_S
        try:
            while not reply.done():
                if time.perf_counter() > end:
                    self._skip = min(2 * self._skip or 1, _MAX_SKIPPED)
                    self._skipped = 0
                    return
                await asyncio.sleep(0)
        except BaseException:
            reply.cancel()
            raise
        self._skip = 0
