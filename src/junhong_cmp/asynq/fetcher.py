"""The loop that takes tasks from the queues."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from junhong_cmp.asynq.acker import Acker
from junhong_cmp.asynq.broker_types import Ack, AckKind, DequeueResult
from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog
from junhong_cmp.asynq.processor import Processor
from junhong_cmp.asynq.queue_order import QueueOrder
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.asynq.wakeup import Wakeups

log = structlog.stdlib.get_logger(__name__)


class Fetcher:
    """A fetcher fills the free slots with tasks: one script a queue takes as many as there is room for.

    It never holds a task it cannot start at once. Between rounds it waits for
    ``signal``: a slot became free, a queue may have work, or it is to stop.
    """

    def __init__(
        self,
        take: Callable[[str, int], Awaitable[DequeueResult]],
        processor: Processor,
        acker: Acker,
        wakeups: Wakeups,
        config: ServerConfig,
        *,
        signal: asyncio.Event,
    ) -> None:
        self._dequeue = take
        self._processor = processor
        self._acker = acker
        self._wakeups = wakeups
        self._order = QueueOrder(config.queues, strict=config.strict_priority)
        self._admission = processor.admission
        self._signal = signal
        self._backoff = Backoff(config.intervals.backoff_cap)
        self._outage = OutageLog("取任务")
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Take no more tasks; what a running script still brings goes back to its queue."""
        self._stopping.set()
        self._signal.set()

    async def run(self) -> None:
        """Fetch until :meth:`stop`, or until the server has started all tasks it was to run."""
        while not self._stopping.is_set() and not self._processor.exhausted:
            self._signal.clear()  # before looking, so that nothing that happens meanwhile is missed
            if not await self._fill_slots():
                await self._signal.wait()

    async def _fill_slots(self) -> bool:
        """Ask the ready queues once; False when there was no slot or no queue to ask."""
        free = 0 if self._acker.congested else self._processor.free_slots
        if free <= 0:
            return False
        ready = self._wakeups.ready()
        rooms = self._admission.rooms(ready) if self._admission is not None else None
        plan = self._order.shares(ready, free, rooms)
        self._wakeups.watch_sleeping()
        for queue, count in plan:
            try:
                await self._take(queue, count)
            except FAULTS as error:
                self._outage.failed(error)
                await self._pause(self._backoff.next_delay())
                break
            self._outage.worked()
            self._backoff.reset()
        return bool(plan)

    async def _take(self, queue: str, count: int) -> None:
        asked_at = time.monotonic()
        result = await self._dequeue(queue, count)
        refused = 0
        for leased in result.tasks:
            if self._stopping.is_set():
                self._acker.submit(Ack(kind=AckKind.REQUEUE, task=leased))
            elif self._admission is None or self._admission.admits(leased.message.type):
                self._processor.begin(leased, asked_at)
            else:
                refused += 1
                self._acker.submit(Ack(kind=AckKind.POSTPONE, task=leased))
        for task_id, reason in result.quarantined:
            log.warning("任务无法解码，已隔离", queue=queue, task_id=task_id, reason=reason)
        saw_all = len(result.tasks) + len(result.quarantined) + len(result.ghosts) < count
        if self._admission is not None:
            self._admission.looked(queue, refused=refused, saw_all=saw_all)
        if result.paused:
            self._wakeups.found_paused(queue)
        elif saw_all:
            self._wakeups.found_empty(queue)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
