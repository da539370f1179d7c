"""Keeping leases, and being visible to the tools."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.in_flight import InFlight, InFlightTable
from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog, is_outage
from junhong_cmp.asynq.server_config import Intervals

log = structlog.stdlib.get_logger(__name__)

_RETRY_CAP = timedelta(seconds=1)
"""Leases run out meanwhile, so a beat that failed is tried again soon."""
_CLEAR_TIMEOUT_S = 0.5
_SHOWN_WORKERS = 1000
"""Tasks shown to the tools at most; a beat must not grow with the concurrency."""
_SHOWN_PAYLOAD_BYTES = 4096


class Heartbeater:
    """A heartbeater renews the leases of all tasks the server holds and tells which it has lost.

    It also writes what Asynq's tools show of a server. It may run on a thread and
    event loop of its own: it reads the in-flight table by snapshot and reports
    through ``on_lost``, which must be safe to call from that thread.
    """

    def __init__(
        self,
        table: InFlightTable,
        intervals: Intervals,
        info: ServerInfo,
        *,
        on_lost: Callable[[Sequence[InFlight]], None],
    ) -> None:
        self._table = table
        self._interval_s = intervals.heartbeat.total_seconds()
        self._lease_s = intervals.lease.total_seconds()
        self._margin_s = intervals.recovery_margin.total_seconds()
        self._state_ttl = intervals.heartbeat * 2
        self._info = info
        self._on_lost = on_lost
        self._outage = OutageLog("续租与心跳")
        self._spoiled = {queue: OutageLog(f"续租：{queue}") for queue in info.queues}
        self._backoff = Backoff(_RETRY_CAP)

    async def run(self, broker: Broker, stopped: asyncio.Event) -> None:
        """Beat until ``stopped`` is set, then remove the server from what the tools show."""
        while not stopped.is_set():
            delay = await self._try_beat(broker)
            try:
                async with asyncio.timeout(delay):
                    await stopped.wait()
            except TimeoutError:
                continue
        try:
            async with asyncio.timeout(_CLEAR_TIMEOUT_S):
                await broker.clear_server_state(self._info)
        except FAULTS as error:
            log.info("未能清除服务器状态，稍后自动过期", error_type=type(error).__name__)

    async def extend_leases(self, broker: Broker) -> None:
        """Renew every lease that is not fresh, and report those that are gone.

        A queue whose keys somebody spoiled does not cost the tasks of the others their leases.
        """
        now = time.monotonic()
        due: dict[str, list[InFlight]] = defaultdict(list)
        for item in self._table.snapshot():
            if item.lease_good_until - now < self._lease_s - self._interval_s / 2:
                due[item.leased.queue].append(item)
        for queue, items in due.items():
            asked_at = time.monotonic()
            try:
                lost_ids = set(await broker.extend_leases(queue, [item.leased for item in items]))
            except FAULTS as error:
                if is_outage(error):
                    raise
                self._spoiled[queue].failed(error)
                continue
            self._spoiled[queue].worked()
            lost = [item for item in items if item.leased.message.id in lost_ids]
            for item in items:
                if item.leased.message.id not in lost_ids:
                    item.lease_good_until = asked_at + self._lease_s
            if lost:
                self._on_lost(lost)

    async def _try_beat(self, broker: Broker) -> float:
        try:
            await self.extend_leases(broker)
            await self._write_state(broker)
        except FAULTS as error:
            self._outage.failed(error)
            self._give_up_overdue()
            return self._backoff.next_delay()
        except Exception:  # a beat that fails for a reason of its own must not be the last one
            log.exception("心跳出错")
            return self._interval_s
        self._outage.worked()
        self._backoff.reset()
        return self._interval_s

    def _give_up_overdue(self) -> None:
        """Report leases that could not be renewed for so long that any recoverer may have taken the task."""
        now = time.monotonic()
        overdue = [item for item in self._table.snapshot() if item.lease_good_until + self._margin_s < now]
        if overdue:
            self._on_lost(overdue)

    async def _write_state(self, broker: Broker) -> None:
        running = list(self._table.running)
        self._info.active_worker_count = len(running)
        workers = [self._describe(item) for item in running[:_SHOWN_WORKERS]]
        await broker.register_queue(*self._info.queues)
        await broker.write_server_state(self._info, workers, ttl=self._state_ttl)

    def _describe(self, item: InFlight) -> WorkerInfo:
        return WorkerInfo(
            host=self._info.host,
            pid=self._info.pid,
            server_id=self._info.server_id,
            task_id=item.task.id,
            task_type=item.task.type,
            task_payload=item.task.payload[:_SHOWN_PAYLOAD_BYTES],
            queue=item.task.queue,
            start_time=to_timestamp(datetime.fromtimestamp(item.started_s, UTC)),
            deadline=to_timestamp(item.task.deadline),
        )


def to_timestamp(at: datetime) -> Timestamp:
    """Return ``at`` as the protobuf type of the protocol's server records."""
    stamp = Timestamp()
    stamp.FromDatetime(at.astimezone(UTC).replace(tzinfo=None))
    return stamp
