"""How the simulated carrier misbehaves: slowly, at random, and when it is asked too much."""

import random
from datetime import timedelta
from enum import Enum, auto
from typing import Final

_HIGHEST_ACCOUNTS: Final = 10_000


class Fault(Enum):
    """A way to fail one request."""

    CARRIER_ERROR = auto()  # HTTP 500 in the contract's own words
    PROXY_ERROR = auto()  # HTTP 502 with the HTML page of something in between


class FaultPlan:
    """A fault plan decides each request's delay and failure, from one seeded source."""

    def __init__(self, *, latency: timedelta, jitter: timedelta, error_rate: float, seed: int) -> None:
        self._latency_s = latency.total_seconds()
        self._jitter_s = jitter.total_seconds()
        self._error_rate = error_rate
        self._random = random.Random(seed)

    def delay_s(self) -> float:
        """Return the seconds to wait before answering: latency, more or less the jitter."""
        if not self._jitter_s:
            return self._latency_s
        return max(0.0, self._latency_s + self._random.uniform(-self._jitter_s, self._jitter_s))

    def draw(self) -> Fault | None:
        """Return how to fail this request, or None to answer it."""
        if not self._error_rate or self._random.random() >= self._error_rate:
            return None
        return self._random.choice(list(Fault))


class Throttle:
    """A throttle lets each account ask ``qps`` times a second, a second's worth at once."""

    def __init__(self, qps: float | None) -> None:
        self._qps = qps
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, account: str, now_s: float) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        if self._qps is None:
            return 0.0
        capacity = max(self._qps, 1.0)
        tokens, then_s = self._buckets.get(account, (capacity, now_s))
        tokens = min(capacity, tokens + (now_s - then_s) * self._qps)
        taken = tokens >= 1.0
        if account not in self._buckets and len(self._buckets) >= _HIGHEST_ACCOUNTS:
            self._buckets.clear()  # made-up account names must not fill the memory
        self._buckets[account] = (tokens - 1.0 if taken else tokens, now_s)
        return 0.0 if taken else (1.0 - tokens) / self._qps
