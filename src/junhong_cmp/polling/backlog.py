"""Whether the task queue has room for more polls."""

import math
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_QUEUE

log = structlog.stdlib.get_logger(__name__)

_LEAST: Final = 8
"""Polls that may wait however slow they are processed: without any, nobody would ever learn better."""
_CERTAINLY_HELD: Final = 0.9
"""Part of a claim's time within which a poll still counts; arrivals are known by the round only."""
_GRAINS: Final = 60
"""A window is remembered in about this many steps."""


class DrainWindow:
    """A drain window tells how many polls may wait so that none waits longer than the window lasts.

    That is as many as were polled within the last window: then the last in the queue is reached within the
    next one. A queue that ran dry in the meantime might have been emptied faster; until it has not for a
    whole window, ``unproven`` polls may wait at least. Since what waits is soon processed, and counts
    from then on, the limit of a fast queue doubles with each round.

    Tasks that waited for longer than their claims hold are dropped in no time: that is no speed to count
    on, nor does a queue emptied that way count as dry. The queue is first in, first out, so which tasks
    those were follows from how long it was when.
    """

    def __init__(self, visibility: timedelta, *, unproven: int) -> None:
        self._length = visibility.total_seconds() / 2
        self._expires_s = visibility.total_seconds() * _CERTAINLY_HELD
        self._unproven = unproven
        self._processed = 0
        self._polled = 0
        self._samples: deque[tuple[float, int]] = deque()  # when, and what had been polled until then
        self._arrivals: deque[tuple[float, int]] = deque()  # when, and the last place in the queue by then
        self._expired = 0
        self._last_dry: float | None = None
        self._last_drop = -math.inf

    def observe(self, now: float, pending: int, processed: int) -> None:
        """Take in what waits and what has ever been processed at ``now`` (monotonic seconds)."""
        if self._last_dry is None or processed < self._processed:  # it begins, or Redis lost its data
            self._samples.clear()
            self._arrivals.clear()
            self._processed, self._expired = processed, processed + pending  # of unknown age
        while self._arrivals and self._arrivals[0][0] <= now - self._expires_s:
            self._expired = max(self._expired, self._arrivals.popleft()[1])
        polled = max(0, processed - max(self._processed, self._expired))
        if polled < processed - self._processed:
            self._last_drop = now
        if self._last_dry is None or (not pending and now - self._last_drop >= self._length):
            self._last_dry = now
        self._polled += polled
        self._processed = processed
        self._remember(self._arrivals, now, processed + pending)
        self._remember(self._samples, now, self._polled)
        while len(self._samples) > 1 and self._samples[1][0] <= now - self._length:
            self._samples.popleft()

    def is_proven(self, now: float) -> bool:
        """Whether polls have been waiting for a whole window: what was polled is all that could be."""
        return self._last_dry is not None and now - self._last_dry >= self._length

    def limit(self, now: float) -> int:
        """Return how many polls may wait."""
        ended = self._polled - self._samples[0][1] if self._samples else 0
        return max(ended, _LEAST if self.is_proven(now) else self._unproven)

    def _remember(self, samples: deque[tuple[float, int]], now: float, count: int) -> None:
        """Append a sample, or let it replace the last count if that was taken just before."""
        if len(samples) > 1 and now - samples[-2][0] < self._length / _GRAINS:
            samples.pop()
        samples.append((now, count))


class BacklogGate:
    """A backlog gate keeps pending polls below what is processed before their claims run out.

    Beyond that it closes at the high-water mark, whatever the speed, and opens at the low-water mark.
    Cards not claimed wait in their shards, where they cost nothing and keep their order; a queue
    no consumer empties would only fill with claims that run out.
    """

    def __init__(
        self,
        broker: Broker,
        settings: PollingSettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._high = settings.high_water
        self._low = settings.low_water
        self._monotonic = monotonic
        self._window = DrainWindow(settings.visibility, unproven=settings.unproven_backlog)
        self._closed = False
        self._rare = RareLog()

    async def room(self) -> int:
        """Return how many polls may be enqueued now; 0 while the gate is closed."""
        pending, processed = await self._broker.queue_flow(POLLING_QUEUE)
        now = self._monotonic()
        self._window.observe(now, pending, processed)
        if self._closed and pending <= self._low:
            self._closed = False
            log.info("轮询积压回落，恢复认领", pending=pending, low_water=self._low)
        elif not self._closed and pending >= self._high:
            self._closed = True
            log.warning("轮询积压达到高水位，暂停认领", pending=pending, high_water=self._high)
        if self._closed:
            return 0
        limit = min(self._high, self._window.limit(now))
        if pending >= limit and self._window.is_proven(now):
            self._rare.warning("轮询处理速度不足，按处理速度收紧认领", pending=pending, limit=limit)
        return max(0, limit - pending)
