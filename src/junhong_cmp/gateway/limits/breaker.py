"""Leaving a carrier alone while its calls fail, and finding out with one call when they work again."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from junhong_cmp.gateway.limits.failure_rate import FailureRate

_JITTER: Final = 0.2
_PROBE_UNDER_WAY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """When a breaker opens, and for how long.

    It opens when at least ``min_calls`` ended within ``window`` and ``failure_rate`` of them failed. It rests
    for ``rest`` before a probe, twice as long after each probe that fails, up to ``longest_rest``.
    """

    window: timedelta = timedelta(seconds=30)
    min_calls: int = 20
    failure_rate: float = 0.5
    rest: timedelta = timedelta(seconds=5)
    longest_rest: timedelta = timedelta(minutes=2)


class BreakerState(StrEnum):
    """Closed lets every call pass, open none, half-open one at a time: the probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CallVerdict(StrEnum):
    """What a call told about its carrier; ``NOTHING`` if it was not made or not waited for."""

    WORKED = "worked"
    FAILED = "failed"
    NOTHING = "nothing"


class Pass(NamedTuple):
    """Leave for one call, the probe or any; ``era`` counts the openings and closings of the breaker."""

    era: int
    probe: bool


class Breaker:
    """A breaker decides about the calls of one account; ``now_s`` is always a monotonic reading.

    The result of a call that was let pass before the breaker opened or closed says nothing about the time
    after, so it is not counted.
    """

    def __init__(
        self, settings: BreakerSettings, *, spread: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._settings = settings
        self._spread = spread
        self._rate = FailureRate(settings.window)
        self._state = BreakerState.CLOSED
        self._era = 0
        self._failed_probes = 0
        self._opened_at_s = 0.0
        self._probe_at_s = 0.0

    @property
    def state(self) -> BreakerState:
        """The present state; open turns to half-open only when a call takes the probe."""
        return self._state

    @property
    def rate(self) -> FailureRate:
        """The failures that count at present."""
        return self._rate

    @property
    def failed_probes(self) -> int:
        """How many probes have failed since it opened."""
        return self._failed_probes

    def open_for(self, now_s: float) -> timedelta:
        """Return how long ago it opened."""
        return timedelta(seconds=now_s - self._opened_at_s)

    def ask(self, now_s: float) -> Pass | timedelta:
        """Return leave for one call, or how long it is until the next probe; every leave is to be settled."""
        if self._state is BreakerState.CLOSED:
            return Pass(self._era, probe=False)
        if self._state is BreakerState.HALF_OPEN:
            return _PROBE_UNDER_WAY
        if now_s < self._probe_at_s:
            return timedelta(milliseconds=math.ceil((self._probe_at_s - now_s) * 1000))
        self._state = BreakerState.HALF_OPEN
        return Pass(self._era, probe=True)

    def settle(self, leave: Pass, verdict: CallVerdict, now_s: float) -> None:
        """Take note of how a call ended."""
        if leave.era != self._era:
            return
        if leave.probe:
            self._settle_probe(verdict, now_s)
        elif verdict is not CallVerdict.NOTHING:
            self._rate.add(now_s, failed=verdict is CallVerdict.FAILED)
            if self._has_failed_too_often():
                self._opened_at_s = now_s
                self._open(now_s)

    def _has_failed_too_often(self) -> bool:
        enough = self._rate.calls >= self._settings.min_calls
        return enough and self._rate.rate >= self._settings.failure_rate

    def _settle_probe(self, verdict: CallVerdict, now_s: float) -> None:
        match verdict:
            case CallVerdict.WORKED:
                self._era += 1
                self._state = BreakerState.CLOSED
                self._failed_probes = 0
                self._rate.clear()
            case CallVerdict.FAILED:
                self._failed_probes += 1
                self._open(now_s)
            case CallVerdict.NOTHING:
                self._state = BreakerState.OPEN  # the next call is the probe

    def _open(self, now_s: float) -> None:
        rest = min(self._settings.rest * 2 ** min(self._failed_probes, 16), self._settings.longest_rest)
        self._era += 1
        self._state = BreakerState.OPEN
        self._probe_at_s = now_s + rest.total_seconds() * self._spread(1 - _JITTER, 1 + _JITTER)
