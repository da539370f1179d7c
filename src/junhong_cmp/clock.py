"""Time as a dependency: code that decides by time takes a :class:`Clock`."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two readings of time: one to write down, one to measure with."""

    def now(self) -> datetime:
        """Return the wall-clock instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never steps back."""
        ...


class SystemClock:
    """A system clock reads the machine's own clocks."""

    def now(self) -> datetime:
        """Return the machine's wall-clock instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic clock in seconds."""
        return time.monotonic()
