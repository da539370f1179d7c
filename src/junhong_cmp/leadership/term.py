"""One process's leadership, from its election to its end."""

import time
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum

Listener = Callable[[], object]


class TermEnd(StrEnum):
    """Why a term ended."""

    LOST = "租约已属他人或已不存在"
    LAPSED = "未能在信任期内续约"
    FENCED = "任期已被更高的任期隔离"
    DATA_LOST = "分片的任期记录已丢失"
    RESIGNED = "计划内卸任"


class Term:
    """A term says which epoch its loops act under, and whether they may still rely on it.

    Trust runs from the start of the last attempt that succeeded, on the monotonic clock, for less than the
    lease lasts on the server: it is over before anybody else can be elected. A process that was frozen sees
    so itself the moment it goes on. Any thread may ask, extend and end.
    """

    def __init__(self, epoch: int, *, trusted_until: float, gap: timedelta | None = None) -> None:
        self.epoch = epoch
        self.gap = gap
        self.fence = 0
        self._trusted_until = trusted_until
        self._end: TermEnd | None = None
        self._on_end: Listener | None = None

    @property
    def trusted(self) -> bool:
        """Whether nobody else can have been elected yet."""
        return self._end is None and time.monotonic() < self._trusted_until

    @property
    def trusted_until(self) -> float:
        """The instant on the monotonic clock at which trust runs out."""
        return self._trusted_until

    @property
    def end_reason(self) -> TermEnd | None:
        """Why the term has ended; None while it lasts."""
        return self._end

    def listen(self, on_end: Listener) -> None:
        """Call ``on_end``, from whatever thread ends the term, once; at once if it has ended."""
        self._on_end = on_end
        if self._end is not None:
            on_end()

    def extend(self, trusted_until: float) -> None:
        """Trust the term until a later instant."""
        self._trusted_until = trusted_until

    def end(self, reason: TermEnd) -> None:
        """End the term; the first reason counts."""
        if self._end is None:
            self._end = reason
            if self._on_end is not None:
                self._on_end()

    def dispute(self, fence: int | None) -> None:
        """End the term because a shard refused its epoch: it holds ``fence``, or none at all.

        The next term's epoch will exceed ``fence``.
        """
        self.fence = max(self.fence, fence or 0)
        self.end(TermEnd.FENCED if fence is not None and fence > self.epoch else TermEnd.DATA_LOST)
