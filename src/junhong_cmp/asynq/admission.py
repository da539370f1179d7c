"""Limits within one process: how many handlers of a queue, or of a task type, may run at once."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final

from junhong_cmp.asynq.server_config import ServerConfig

_UNLIMITED: Final = 1 << 30
_FIRST_REST_S: Final = 0.1
_LONGEST_REST_S: Final = 1.0
_SHORTEST_REST_S: Final = 0.01
_HURRIED_COUNT: Final = 8
_TYPES_KNOWN: Final = 4096


class Admission:
    """An admission counts running handlers and says which queues may be asked, and which tasks started.

    A queue is never asked for more than its limit has room for. The type of a task is known only once it
    was taken: one whose type has no room goes back to the tail of its queue, so that what waits behind it
    comes forward. The queue then rests: for 0.1 s while there is more to see in it, growing to 1 s when all
    of it was seen, or until a handler of a limited type ends. So a queue full of such tasks is turned over at
    a bounded rate, and all other types are found.
    """

    def __init__(
        self, per_queue: Mapping[str, int], per_type: Mapping[str, int], *, on_room: Callable[[], None]
    ) -> None:
        self._per_queue = per_queue
        self._per_type = per_type
        self._on_room = on_room
        self._running: Counter[str] = Counter()
        self._running_limited: Counter[str] = Counter()
        self._pattern_of = lru_cache(_TYPES_KNOWN)(self._find_pattern)
        self._rests: dict[str, float] = {}
        self._resting: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._hurried: set[str] = set()

    @classmethod
    def of(cls, config: ServerConfig, *, on_room: Callable[[], None]) -> "Admission | None":
        """Return what keeps the limits of ``config``; None if there are none."""
        if not config.queue_limits and not config.type_limits:
            return None
        return cls(config.queue_limits, config.type_limits, on_room=on_room)

    def rooms(self, queues: Sequence[str]) -> dict[str, int]:
        """Return the queues that may be asked now, and for how many tasks at most."""
        rooms: dict[str, int] = {}
        for queue in queues:
            room = self._per_queue.get(queue, _UNLIMITED) - self._running[queue]
            if room > 0 and queue not in self._resting:
                rooms[queue] = min(room, _HURRIED_COUNT) if queue in self._hurried else room
        return rooms

    def admits(self, task_type: str) -> bool:
        """Say whether one more handler of this type may run."""
        pattern = self._pattern_of(task_type)
        return pattern is None or self._running_limited[pattern] < self._per_type[pattern]

    def entered(self, queue: str, task_type: str) -> None:
        """Count a handler that starts."""
        self._running[queue] += 1
        if (pattern := self._pattern_of(task_type)) is not None:
            self._running_limited[pattern] += 1

    def left(self, queue: str, task_type: str) -> None:
        """Count a handler that has ended."""
        self._running[queue] -= 1
        if (pattern := self._pattern_of(task_type)) is not None:
            self._running_limited[pattern] -= 1
            for resting in list(self._resting):
                self._hurry(resting)

    def looked(self, queue: str, *, refused: int, saw_all: bool) -> None:
        """Note that tasks were taken from ``queue``, of which ``refused`` had to go back to its tail."""
        self._hurried.discard(queue)
        if not refused:
            self._rests.pop(queue, None)
            return
        rest_s = min(2 * self._rests.get(queue, _FIRST_REST_S / 2), _LONGEST_REST_S)
        self._rests[queue] = rest_s if saw_all else _FIRST_REST_S
        self._rest(queue, self._rests[queue])

    def close(self) -> None:
        """End all rests; nothing is asked any more."""
        for _, timer in self._resting.values():
            timer.cancel()
        self._resting.clear()

    def _find_pattern(self, task_type: str) -> str | None:
        """Return the limit a type falls under: its own, else the longest prefix, as in a mux."""
        if task_type in self._per_type:
            return task_type
        return max((name for name in self._per_type if task_type.startswith(name)), key=len, default=None)

    def _rest(self, queue: str, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._wake, queue)
        self._resting[queue] = time.monotonic(), timer

    def _hurry(self, queue: str) -> None:
        """Let a rest end early, for a few tasks: one of them may be of the type that has room now."""
        if queue in self._hurried:
            return
        self._hurried.add(queue)
        began, timer = self._resting[queue]
        timer.cancel()
        wait_s = max(0.0, began + _SHORTEST_REST_S - time.monotonic())
        wake = partial(self._wake, queue)
        self._resting[queue] = began, asyncio.get_running_loop().call_later(wait_s, wake)

    def _wake(self, queue: str) -> None:
        self._resting.pop(queue, None)
        self._on_room()
