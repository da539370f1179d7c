"""The share of calls that failed of late."""

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

_SLICES: Final = 10


@dataclass(slots=True)
class _Slice:
    number: int
    calls: int = 0
    failures: int = 0


class FailureRate:
    """A failure rate counts calls over a sliding window, a tenth of it at a time."""

    def __init__(self, window: timedelta) -> None:
        self._slice_s = window.total_seconds() / _SLICES
        self._slices: deque[_Slice] = deque()
        self.calls = 0
        self.failures = 0

    @property
    def rate(self) -> float:
        """The share of failures, 0 to 1, as of the last call."""
        return self.failures / self.calls if self.calls else 0.0

    def add(self, now_s: float, *, failed: bool) -> None:
        """Count a call that ended at ``now_s``, a monotonic reading."""
        number = int(now_s / self._slice_s)
        self._forget_before(number - _SLICES + 1)
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(_Slice(number))
        latest = self._slices[-1]
        latest.calls += 1
        latest.failures += failed
        self.calls += 1
        self.failures += failed

    def clear(self) -> None:
        """Forget everything."""
        self._slices.clear()
        self.calls = self.failures = 0

    def _forget_before(self, oldest: int) -> None:
        while self._slices and self._slices[0].number < oldest:
            gone = self._slices.popleft()
            self.calls -= gone.calls
            self.failures -= gone.failures
