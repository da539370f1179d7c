"""The loop that takes tasks from the queues."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from junhong_cmp.asynq.acker import Acker
from junhong_cmp.asynq.broker_types import Ack, AckKind, DequeueResult
from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog, is_outage
from junhong_cmp.asynq.processor import Processor
from junhong_cmp.asynq.queue_order import QueueOrder
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.asynq.wakeup import Wakeups

log = structlog.stdlib.get_logger(__name__)

_MOST_OF_ONE_HAND: Final = 8
"""With fewer slots a script has too little to do for two hands to pay."""


class Fetcher:
    """A fetcher fills the free slots with tasks: one script a queue takes as many as there is room for.

    It never holds a task it cannot start at once. Between rounds it waits for
    ``signal``: a slot became free, a queue may have work, or it is to stop. Two
    hands fetch half of the slots each, so that Redis is busy with one's script
    while handlers of the other's tasks run. A queue whose keys somebody spoiled
    rests like a paused one; the others are served on.
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
        self._spoiled = {queue: OutageLog(f"取任务：{queue}") for queue in config.queues}
        self._stopping = asyncio.Event()
        # Whether a type has room is known only once a task has been seen: then one hand at a time.
        self._hands = 1 if config.type_limits or config.concurrency <= _MOST_OF_ONE_HAND else 2
        self._most_at_once = -(-config.concurrency // self._hands)
        self._asked: Counter[str] = Counter()
        """By queue, what the hands have asked for: neither may count on the slots of the other."""

    def stop(self) -> None:
        """Take no more tasks; what a running script still brings goes back to its queue."""
        self._stopping.set()
        self._signal.set()

    async def run(self) -> None:
        """Fetch until :meth:`stop`, or until the server has started all tasks it was to run."""
        async with asyncio.TaskGroup() as hands:
            for _ in range(self._hands):
                hands.create_task(self._fetch())

    async def _fetch(self) -> None:
        while not self._stopping.is_set() and not self._processor.exhausted:
            self._signal.clear()  # before looking, so that nothing that happens meanwhile is missed
            if not await self._fill_slots():
                await self._signal.wait()

    async def _fill_slots(self) -> bool:
        """Ask the ready queues once; False when there was no slot or no queue to ask."""
        free = 0 if self._acker.congested else self._processor.free_slots - self._asked.total()
        free = min(free, self._most_at_once)
        if free <= 0:
            return False
        ready = self._wakeups.ready()
        plan = self._order.shares(ready, free, self._rooms(ready))
        self._wakeups.watch_sleeping()
        left = Counter(dict(plan))
        self._asked += left
        try:
            for queue, count in plan:
                await self._try_take(queue, count)
                self._asked[queue] -= left.pop(queue)
                self._outage.worked()
                self._backoff.reset()
        except FAULTS as error:
            self._outage.failed(error)
            await self._pause(self._backoff.next_delay())
        finally:
            self._asked -= left
        return bool(plan)

    def _rooms(self, ready: Sequence[str]) -> dict[str, int] | None:
        """Return the queues that may be asked and for how many tasks at most; None for any and all."""
        if self._admission is None:
            return None
        asked = self._asked
        rooms = self._admission.rooms(ready).items()
        return {queue: room - asked[queue] for queue, room in rooms if room > asked[queue]}

    async def _try_take(self, queue: str, count: int) -> None:
        try:
            await self._take(queue, count)
        except FAULTS as error:
            if is_outage(error):
                raise
            self._spoiled[queue].failed(error)
            self._wakeups.found_paused(queue)
        else:
            self._spoiled[queue].worked()

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
