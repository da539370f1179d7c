"""The number every OneLink request carries: who asks, when, and a count that does not repeat."""

import secrets
from datetime import timedelta, timezone
from typing import Final

from junhong_cmp.clock import Clock

CARRIER_TIME: Final = timezone(timedelta(hours=8))
"""The carrier's clock: China has had no summer time since 1991."""

_COUNTS: Final = 10**8


class TransIds:
    """Transaction ids never repeat in a process, whatever its clock does, and hardly ever between two.

    One is the appid, the second in the carrier's time (``yyyyMMddHHmmss``) and eight digits. The digits
    count on from a number drawn at random, so that processes that share an appid need not agree.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = secrets.randbelow(_COUNTS)

    def next(self, appid: str) -> str:
        """Return an id that was not used before."""
        self._count = (self._count + 1) % _COUNTS
        second = self._clock.now().astimezone(CARRIER_TIME).strftime("%Y%m%d%H%M%S")
        return f"{appid}{second}{self._count:08d}"
