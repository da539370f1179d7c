"""Simulated time: one mapping from the machine's clock, shared by carriers, test and workers.

A worker gets it by a prelude; the product knows nothing of it. Redis and the monotonic clock keep real time.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shared_clock import SharedClock

_BEFORE_S = 3600.0
_LONGEST_PAUSE = timedelta(seconds=1)


@dataclass
class TimeScale:
    """A time scale tells what simulated time it is.

    From ``start`` on, ``factor`` simulated seconds go by in a real one. Until then it is an hour earlier and
    time passes as it does, so that everything can get ready. The file tells all processes of the start.
    """

    file: Path
    begin_s: float
    factor: float
    made_s: float = field(default_factory=time.time)
    _started_s: float | None = None

    def start(self) -> None:
        """Let simulated time begin."""
        draft = self.file.with_suffix(".draft")
        draft.write_text(repr(time.time()), encoding="utf-8")
        draft.replace(self.file)

    def now(self) -> datetime:
        """Return what simulated time it is."""
        if self._started_s is None and self.file.exists():
            self._started_s = float(self.file.read_text(encoding="utf-8"))
        if self._started_s is None:
            now_s = self.begin_s - _BEFORE_S + time.time() - self.made_s
        else:
            now_s = self.begin_s + (time.time() - self._started_s) * self.factor
        return datetime.fromtimestamp(now_s, UTC)

    def simulated(self, real: timedelta) -> timedelta:
        return real * self.factor

    def real_s(self, simulated: timedelta) -> float:
        return simulated.total_seconds() / self.factor

    def prelude(self, paths: Sequence[str]) -> str:
        """Return the Python that plants this scale into a worker."""
        arguments = f"Path({str(self.file)!r}), {self.begin_s!r}, {self.factor!r}, {self.made_s!r}"
        return (
            f"import sys\nfrom pathlib import Path\nsys.path[:0] = {list(paths)!r}\n"
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
    setattr(PollingSettings, "__init__", hasten)  # noqa: B010 - as above
