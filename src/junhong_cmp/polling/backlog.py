"""Whether the task queue has room for more polls."""

import structlog

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_QUEUE

log = structlog.stdlib.get_logger(__name__)


class BacklogGate:
    """A backlog gate closes at the high-water mark of pending polls and opens at the low-water mark.

    Cards not claimed wait in their shards, where they cost nothing and keep their order; a queue
    no consumer empties would only fill with claims that run out.
    """

    def __init__(self, broker: Broker, settings: PollingSettings) -> None:
        self._broker = broker
        self._high = settings.high_water
        self._low = settings.low_water
        self._closed = False

    async def room(self) -> int:
        """Return how many polls may be enqueued now; 0 while the gate is closed."""
        pending = await self._broker.pending_count(POLLING_QUEUE)
        if self._closed and pending <= self._low:
            self._closed = False
            log.info("轮询积压回落，恢复认领", pending=pending, low_water=self._low)
        elif not self._closed and pending >= self._high:
            self._closed = True
            log.warning("轮询积压达到高水位，暂停认领", pending=pending, high_water=self._high)
        return 0 if self._closed else self._high - pending
