"""The times of the lease, and what follows from them."""

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

_MARGIN: Final = 0.1
"""The part of a lease its holder does not rely on: time to stop, and for clocks that run unevenly."""
_JITTER: Final = 0.2
_MISSED_ATTEMPTS: Final = 4
"""So many attempts a standby may miss before it no longer counts as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """A lease lasts ``ttl``, is renewed each ``renew``, and after a failure tried again after ``retry``."""

    ttl: timedelta = timedelta(seconds=15)
    renew: timedelta = timedelta(seconds=5)
    retry: timedelta = timedelta(seconds=2)

    def __post_init__(self) -> None:
        """Check that a holder can renew at least once, and again after one failure, while it trusts itself.

        Raises:
            ValueError: it cannot.

        """
        if min(self.renew, self.retry) <= timedelta(0) or self.renew + self.retry >= self.trust:
            raise ValueError("续约与重试间隔须为正，其和须小于租约有效期的九成")

    @property
    def trust(self) -> timedelta:
        """How long after the start of a successful attempt its holder relies on the lease."""
        return self.ttl * (1 - _MARGIN)

    @property
    def attempt(self) -> timedelta:
        """How long one attempt may take; a stalled connection must leave time for another."""
        return self.renew / 2

    @property
    def shown(self) -> timedelta:
        """How long after its last attempt a standby still counts as one."""
        return self.retry * _MISSED_ATTEMPTS

    def next_retry(self) -> float:
        """Return the seconds to the next attempt, with jitter so that candidates do not march in step."""
        return self.retry.total_seconds() * random.uniform(1 - _JITTER, 1 + _JITTER)
