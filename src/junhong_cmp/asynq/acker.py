"""Writing back what became of tasks, in batches, until Redis has taken it."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckOutcome
from junhong_cmp.asynq.endings import end_tasks
from junhong_cmp.asynq.in_flight import InFlight, InFlightTable
from junhong_cmp.asynq.outages import Backoff, OutageLog, is_outage
from junhong_cmp.asynq.server_config import ServerConfig

log = structlog.stdlib.get_logger(__name__)

_BATCH = 500
_MIN_BACKLOG = 2000
_REFUSED_RETRY_S = 5.0
_REFUSED_TELL_S = 1.0
_HURRIED_RETRY_S = 0.1
_CUT_OFF_S = 0.1


@dataclass(slots=True, eq=False)
class _Entry:
    ack: Ack
    item: InFlight | None
    give_up_at: float
    attempted: bool = False


class Acker:
    """An acker gathers acknowledgements and writes each queue's in one script at a time.

    While one script runs, the next batch gathers: no timer, no added latency.
    What Redis does not take is sent again until it does, up to a deadline of the
    entry's own (Asynq's syncer). Sending twice is safe: the scripts compare the
    delivery's token, so a late or repeated acknowledgement changes nothing.
    """

    def __init__(
        self, broker: Broker, table: InFlightTable, config: ServerConfig, *, on_relieved: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._table = table
        self._backoff_cap = config.intervals.backoff_cap
        self._keep_s = config.intervals.ack_deadline.total_seconds()
        self._limit = max(_MIN_BACKLOG, 4 * config.concurrency)
        self._on_relieved = on_relieved
        self._waiting: dict[str, list[_Entry]] = {queue: [] for queue in config.queues}
        self._signals = {queue: asyncio.Event() for queue in config.queues}
        self._unsettled = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._hurry = asyncio.Event()
        self._refusal_told_at = float("-inf")
        self._writers: list[asyncio.Task[None]] = []

    @property
    def congested(self) -> bool:
        """Whether so many results wait for Redis that no further task should be taken."""
        return self._unsettled >= self._limit

    def start(self) -> None:
        """Start one writer a queue."""
        self._writers = [asyncio.create_task(self._write_queue(queue)) for queue in self._waiting]

    def submit(self, ack: Ack, item: InFlight | None = None) -> None:
        """Have ``ack`` written; until it is, ``item`` stays known and its lease is kept."""
        if item is not None:
            self._table.settling.add(item)
        self._unsettled += 1
        self._idle.clear()
        self._put(_Entry(ack, item, time.monotonic() + self._keep_s))

    async def flush(self, patience_s: float) -> bool:
        """Write everything now, without further back-off; False if ``patience_s`` was not enough."""
        self._hurry.set()
        try:
            async with asyncio.timeout(patience_s):
                await self._idle.wait()
        except TimeoutError:
            log.warning("停止时仍有任务结果未能写回，租约到期后将重新投递", count=self._unsettled)
            return False
        return True

    async def stop(self) -> None:
        """Stop writing; what is not written yet is left to the recovery of its lease."""
        await end_tasks(self._writers, _CUT_OFF_S)

    def _put(self, entry: _Entry) -> None:
        queue = entry.ack.task.queue
        self._waiting[queue].append(entry)
        self._signals[queue].set()

    async def _write_queue(self, queue: str) -> None:
        waiting, signal = self._waiting[queue], self._signals[queue]
        backoff, outage = Backoff(self._backoff_cap), OutageLog("写回任务结果")
        while True:
            await signal.wait()
            signal.clear()
            while waiting:
                batch, waiting[:] = waiting[:_BATCH], waiting[_BATCH:]
                error = await self._write(queue, batch)
                if error is None:
                    outage.worked()
                    backoff.reset()
                    continue
                outage.failed(error)
                waiting[:0] = self._still_worth_keeping(batch)
                await self._pause(backoff.next_delay())

    async def _write(self, queue: str, batch: list[_Entry]) -> BaseException | None:
        """Write one batch; return the error if Redis as a whole is to blame, with nothing of it settled."""
        try:
            outcomes = await self._broker.ack(queue, [entry.ack for entry in batch])
        except Exception as error:  # noqa: BLE001 - an outage is returned, a refused entry found and set apart
            for entry in batch:
                entry.attempted = True
            if is_outage(error):
                return error
            await self._isolate(queue, batch, error)
        else:
            self._settle(queue, zip(batch, outcomes, strict=True))
        return None

    async def _isolate(self, queue: str, batch: list[_Entry], error: Exception) -> None:
        """Halve a batch until the entry that cannot be written stands alone; its neighbours go through."""
        if len(batch) > 1:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                if await self._write(queue, half) is not None:
                    for entry in half:
                        self._put(entry)
            return
        now = time.monotonic()
        if now - self._refusal_told_at > _REFUSED_TELL_S:  # a spoiled queue refuses everything
            self._refusal_told_at = now
            log.error("任务结果无法写回，稍后重试", queue=queue, task_id=_id(batch[0]), exc_info=error)
        for entry in self._still_worth_keeping(batch):
            asyncio.get_running_loop().call_later(_REFUSED_RETRY_S, self._put, entry)

    def _settle(self, queue: str, results: Iterable[tuple[_Entry, AckOutcome]]) -> None:
        superseded: list[str] = []
        missing: list[str] = []
        for entry, outcome in results:
            if outcome is AckOutcome.SUPERSEDED:
                superseded.append(_id(entry))
            elif outcome is AckOutcome.MISSING and not entry.attempted:  # else an earlier attempt had worked
                missing.append(_id(entry))
            self._forget(entry)
        if superseded:
            log.warning(
                "任务已由其他 Worker 接管，结果作废",
                queue=queue,
                count=len(superseded),
                task_id=superseded[0],
            )
        if missing:
            log.warning("任务已不在 Redis 中，结果作废", queue=queue, count=len(missing), task_id=missing[0])

    def _still_worth_keeping(self, batch: list[_Entry]) -> list[_Entry]:
        now = time.monotonic()
        kept = [entry for entry in batch if entry.give_up_at > now]
        dropped = [entry for entry in batch if entry.give_up_at <= now]
        for entry in dropped:
            self._forget(entry)
        if dropped:
            log.error("任务结果超过保留时限仍未写回，放弃", count=len(dropped), task_id=_id(dropped[0]))
        return kept

    def _forget(self, entry: _Entry) -> None:
        if entry.item is not None:
            self._table.settling.discard(entry.item)
        was_congested = self.congested
        self._unsettled -= 1
        if was_congested and not self.congested:
            self._on_relieved()
        if self._unsettled == 0:
            self._idle.set()

    async def _pause(self, seconds: float) -> None:
        if self._hurry.is_set():
            await asyncio.sleep(_HURRIED_RETRY_S)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return


def _id(entry: _Entry) -> str:
    return entry.ack.task.message.id
