"""Redis time without asking Redis each time."""

import time
from collections.abc import Callable
from typing import Final

_MS: Final = 1000


class ServerClock:
    """A server clock carries the last time Redis told on by the monotonic clock.

    It serves where a guess will do; what decides about a card is measured by Redis itself.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset: float | None = None

    def note(self, now_ms: int) -> None:
        """Take over the time Redis has just told."""
        self._offset = now_ms - self._monotonic() * _MS

    def now_ms(self) -> int | None:
        """Return about what Redis would say, unix milliseconds; None before it ever told."""
        return None if self._offset is None else int(self._monotonic() * _MS + self._offset)
