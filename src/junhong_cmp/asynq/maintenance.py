"""The rhythm of a server's background duties."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog

log = structlog.stdlib.get_logger(__name__)


class MaintenanceLoop:
    """A maintenance loop performs one duty for every queue, at once and then at an interval, and never ends.

    A queue whose turn fails does not keep the others from theirs. After a
    failure the next round comes after a back-off, but not sooner than it would
    take to harm a Redis that is just coming up.
    """

    def __init__(
        self,
        duty: str,
        act: Callable[[str], Awaitable[None]],
        queues: list[str],
        interval: timedelta,
        backoff_cap: timedelta,
    ) -> None:
        self._duty = duty
        self._act = act
        self._queues = queues
        self._interval_s = interval.total_seconds()
        self._backoff = Backoff(backoff_cap)
        self._outage = OutageLog(duty)

    async def run(self) -> None:
        """Perform the duty until cancelled."""
        while True:
            worked = [await self._turn(queue) for queue in self._queues]
            if all(worked):
                self._backoff.reset()
                self._outage.worked()
                await asyncio.sleep(self._interval_s)
            else:
                await asyncio.sleep(min(self._backoff.next_delay(), self._interval_s))

    async def _turn(self, queue: str) -> bool:
        try:
            await self._act(queue)
        except FAULTS as error:
            self._outage.failed(error)
            return False
        except Exception:  # one queue's bad data must not end the duty for all others
            log.exception("后台维护出错", duty=self._duty, queue=queue)
        return True
