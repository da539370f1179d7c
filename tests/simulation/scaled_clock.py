"""Simulated time: one mapping from the machine's clock, shared by carriers, test and workers.

A worker gets it by a prelude; the product knows nothing of it. Redis and the monotonic clock keep real time.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shared_clock import SharedClock

_LONGEST_PAUSE = timedelta(seconds=1)


@dataclass(frozen=True)
class TimeScale:
    """A time scale tells what simulated time it is: ``factor`` simulated seconds go by in a real one."""

    real_start_s: float
    start_s: float
    factor: float

    @classmethod
    def beginning(cls, start: datetime, *, lead: timedelta, factor: float) -> "TimeScale":
        """Let it be ``start`` after ``lead`` of real time."""
        return cls(time.time() + lead.total_seconds(), start.timestamp(), factor)

    def now(self) -> datetime:
        """Return what simulated time it is."""
        now_s = self.start_s + (time.time() - self.real_start_s) * self.factor
        return datetime.fromtimestamp(now_s, UTC)

    def simulated(self, real: timedelta) -> timedelta:
        return real * self.factor

    def real_s(self, simulated: timedelta) -> float:
        return simulated.total_seconds() / self.factor

    def prelude(self, paths: Sequence[str]) -> str:
        """Return the Python that plants this scale into a worker."""
        arguments = f"{self.real_start_s!r}, {self.start_s!r}, {self.factor!r}"
        return (
            f"import sys\nsys.path[:0] = {list(paths)!r}\n"
            "from tests.simulation.scaled_clock import TimeScale, plant\n"
            f"plant(TimeScale({arguments}))"
        )


def plant(scale: TimeScale) -> None:
    """Let the clock that everything in this worker goes by tell simulated time from now on.

    An account rests by that clock, but its cards wait for as long in Redis, by real time: they are not to
    wait for hours of simulated time.
    """
    init = PollingSettings.__init__

    def now(_: SharedClock) -> datetime:
        return scale.now()

    def hasten(settings: PollingSettings, **given: Any) -> None:
        init(settings, **{"max_pause": _LONGEST_PAUSE, **given})

    setattr(SharedClock, "now", now)  # noqa: B010 - for this process only
    setattr(PollingSettings, "__init__", hasten)  # noqa: B010
