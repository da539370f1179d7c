"""Simulated time: one mapping from the machine's clock, shared by carriers, test and workers.

A worker gets it by a prelude; the product knows nothing of it. Redis and the monotonic clock keep real time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from junhong_cmp.clock import SystemClock


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

    def now_s(self) -> float:
        return self.start_s + (time.time() - self.real_start_s) * self.factor

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_s(), UTC)

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
    """Let every clock of this process, and its cron entries, go by simulated time from now on."""
    from junhong_cmp.asynq.scheduler import Scheduler  # noqa: PLC0415 - only a worker needs them
    from junhong_cmp.worker import modules  # noqa: PLC0415

    def now(_: SystemClock) -> datetime:
        return scale.now()

    _set(SystemClock, "now", now)
    _set(modules, "Scheduler", partial(Scheduler, clock=scale.now_s))


def _set(owner: object, name: str, value: Callable[..., object]) -> None:
    setattr(owner, name, value)
