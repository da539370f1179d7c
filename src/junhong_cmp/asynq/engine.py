"""The parts of a running server, composed."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from junhong_cmp.asynq.acker import Acker
from junhong_cmp.asynq.aggregator import Aggregator, GroupKeeper
from junhong_cmp.asynq.asynq_pb2 import ServerInfo
from junhong_cmp.asynq.broker import Broker, BrokerLimits
from junhong_cmp.asynq.broker_groups import Groups
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.endings import end_tasks
from junhong_cmp.asynq.fetcher import Fetcher
from junhong_cmp.asynq.forwarder import Forwarder
from junhong_cmp.asynq.heart import Heart, LoopHeart, ThreadHeart
from junhong_cmp.asynq.heartbeater import Heartbeater
from junhong_cmp.asynq.in_flight import CancelCause, InFlight, InFlightTable
from junhong_cmp.asynq.janitor import Janitor
from junhong_cmp.asynq.maintenance import MaintenanceLoop
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.asynq.processing_task import Handler
from junhong_cmp.asynq.processor import Processor
from junhong_cmp.asynq.recoverer import Recoverer
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.asynq.subscriber import Subscriber
from junhong_cmp.asynq.wakeup import Wakeups
from junhong_cmp.asynq.watchdog import Watchdog

log = structlog.stdlib.get_logger(__name__)

_RESTART_S = 1.0
_CUT_OFF_S = 0.1
_CANCEL_WAIT_S = 0.5
_PUT_BACK_WAIT_S = 0.2
_FLUSH_WAIT_S = 0.5
_HEART_WAIT_S = 0.4
"""Together they stay below the two seconds a stop may take beyond its grace period."""
_DRAIN_LOOK_S = 60.0


@dataclass(frozen=True, slots=True)
class Connections:
    """The Redis clients of one server; ``open_heartbeat`` opens the one its heartbeat thread owns."""

    main: RedisClient
    blocking: RedisClient
    open_heartbeat: Callable[[], RedisClient] | None


@dataclass(frozen=True, slots=True)
class StopReport:
    """What became of the tasks that were running when the server was asked to stop."""

    completed: int
    """Ended by themselves, with success or failure."""
    requeued: int
    """Cancelled and put back at the head of their queue."""
    abandoned: int
    """Still running although cancelled; their leases lapse and another worker takes them."""


class Engine:
    """An engine starts the parts of one server together and stops them in the order that loses nothing."""

    def __init__(
        self, connections: Connections, handler: Handler, config: ServerConfig, info: ServerInfo
    ) -> None:
        self._config = config
        self._info = info
        self._loop = asyncio.get_running_loop()
        self._signal = asyncio.Event()
        self._table = InFlightTable()
        self._broker = Broker(connections.main, limits=_limits(config))
        self._acker = Acker(self._broker, self._table, config, on_relieved=self._signal.set)
        self._processor = Processor(
            self._broker, handler, self._acker, self._table, config, on_slot_free=self._signal.set
        )
        by_priority = sorted(config.queues, key=lambda queue: -config.queues[queue])
        self._wakeups = Wakeups(connections.blocking, by_priority, config.intervals, self._signal)
        self._fetcher = Fetcher(
            partial(self._broker.dequeue, owner=info.server_id),
            self._processor,
            self._acker,
            self._wakeups,
            config,
            signal=self._signal,
        )
        self._heart = self._make_heart(connections)
        self._watchdog = Watchdog(self._table, config.intervals.loop_blocked_after)
        self._subscriber = Subscriber(
            connections.blocking, self._processor.cancel_task, config.intervals.backoff_cap
        )
        self._groups = Groups(connections.main, self._broker.limits.max_message_bytes)
        self._aggregator = self._make_aggregator()
        self._aggregating: asyncio.Task[None] | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []

    @property
    def in_flight(self) -> int:
        """Number of handlers running now."""
        return len(self._table.running)

    @property
    def abandoned(self) -> int:
        """Number of handlers that run on although they were cancelled; each keeps its slot."""
        return sum(item.reported for item in self._table.running)

    def start(self) -> None:
        """Start every part; none needs a reachable Redis for it."""
        self._acker.start()
        self._heart.start()
        self._watchdog.start()
        self._wakeups.start()
        duties = [self._subscriber.run, *(loop.run for loop in self._maintenance())]
        self._background = [asyncio.create_task(_keep_running(duty)) for duty in duties]
        if self._aggregator is not None:
            self._aggregating = asyncio.create_task(_keep_running(self._aggregator.run))
        self._fetching = asyncio.create_task(_keep_running(self._fetch))

    def stop_fetching(self) -> None:
        """Take no further tasks."""
        self._info.status = "stopped"
        self._fetcher.stop()

    def drain(self) -> None:
        """Take no further tasks and tell the running handlers."""
        self._processor.draining.set()
        self.stop_fetching()

    async def wait_drained(self) -> None:
        """Wait until the server drains and its last handler has ended."""
        await self._processor.draining.wait()
        if self._fetching is not None:
            await asyncio.wait([self._fetching])  # what a dequeue under way still brings goes back
        while not await self._processor.wait_idle(_DRAIN_LOOK_S):
            pass

    async def stop(self) -> StopReport:
        """Drain, cancel, requeue, flush, disappear; bounded whatever Redis does."""
        began = time.monotonic()
        grace_s = self._config.shutdown_timeout.total_seconds()
        running = self.in_flight
        log.info("任务服务器开始停止", in_flight=running, grace_s=grace_s)
        self.drain()
        await self._drain(began + grace_s)
        abandoned = self._report_abandoned()
        await self._acker.flush(_FLUSH_WAIT_S)
        await self._acker.stop()
        await self._heart.stop(_HEART_WAIT_S)
        self._processor.close()
        self._watchdog.stop()
        requeued = self._processor.requeued
        report = StopReport(running - requeued - abandoned, requeued, abandoned)
        log.info(
            "任务服务器已停止",
            completed=report.completed,
            requeued=report.requeued,
            abandoned=report.abandoned,
            elapsed_s=round(time.monotonic() - began, 3),
        )
        return report

    async def _fetch(self) -> None:
        await self._fetcher.run()
        if self._processor.exhausted:
            log.info("任务数已达上限，开始排空", max_tasks=self._config.max_tasks)
            self.drain()

    async def _drain(self, until: float) -> None:
        if self._aggregator is not None:
            self._aggregator.stop()
        await asyncio.gather(end_tasks(self._background), self._wakeups.stop())
        await self._processor.wait_idle(until - time.monotonic())
        left_s = until - time.monotonic()
        await asyncio.gather(self._end_fetching(left_s), self._end_aggregating(left_s))
        self._processor.cancel_all(CancelCause.SHUTDOWN)
        await asyncio.gather(self._processor.wait_idle(_CANCEL_WAIT_S), self._put_back_unanswered())

    async def _end_aggregating(self, patience_s: float) -> None:
        """Let a callback that runs come to its end; what it was given otherwise goes back to its group."""
        if self._aggregator is None or self._aggregating is None:
            return
        await asyncio.wait([self._aggregating], timeout=max(patience_s, 0.0))
        await end_tasks([self._aggregating], _CUT_OFF_S)
        await self._aggregator.put_back()

    async def _put_back_unanswered(self) -> None:
        """Put back what a dequeue that was cut off may have taken; what is missed waits for its lease."""
        try:
            async with asyncio.timeout(_PUT_BACK_WAIT_S):
                for queue in self._config.queues:
                    await self._broker.put_back_unanswered(queue)
        except FAULTS as error:
            log.info("停止时未能放回应答丢失的任务，租约到期后将重新投递", error_type=type(error).__name__)

    async def _end_fetching(self, patience_s: float) -> None:
        """Let a dequeue that is under way end: a cancelled one may have taken tasks nobody would know of."""
        if self._fetching is None:
            return
        await asyncio.wait([self._fetching], timeout=max(patience_s, 0.0))
        await end_tasks([self._fetching], _CUT_OFF_S)

    def _report_abandoned(self) -> int:
        now = time.monotonic()
        left = list(self._table.running)
        for item in left:
            self._processor.deadlines.report_abandoned(item, now)
        return len(left)

    def _make_aggregator(self) -> Aggregator | None:
        rules = self._config.aggregation
        if rules is None:
            return None
        return Aggregator(self._groups, rules, list(self._config.queues), self._config.intervals.backoff_cap)

    def _make_heart(self, connections: Connections) -> Heart:
        intervals = self._config.intervals
        heartbeater = Heartbeater(self._table, intervals, self._info, on_lost=self._on_leases_lost)
        if connections.open_heartbeat is None:
            return LoopHeart(heartbeater, self._broker)
        return ThreadHeart(heartbeater, connections.open_heartbeat, intervals.lease)

    def _on_leases_lost(self, items: Sequence[InFlight]) -> None:
        self._loop.call_soon_threadsafe(self._cancel_lost, items)

    def _cancel_lost(self, items: Sequence[InFlight]) -> None:
        for item in items:
            self._processor.cancel(item, CancelCause.LEASE_LOST)

    def _maintenance(self) -> list[MaintenanceLoop]:
        intervals = self._config.intervals
        keeper = GroupKeeper(self._groups, aggregates=self._aggregator is not None)
        duties = (
            ("转发到期任务", Forwarder(self._broker).forward, intervals.forward),
            ("收回失联任务", Recoverer(self._broker, self._table, self._config).recover, intervals.recover),
            ("清理已完成任务", Janitor(self._broker).clean, intervals.janitor),
            ("放回中断的分组汇总", keeper.keep, intervals.recover),
        )
        queues = list(self._config.queues)
        return [
            MaintenanceLoop(name, act, queues, interval, intervals.backoff_cap)
            for name, act, interval in duties
        ]


def _limits(config: ServerConfig) -> BrokerLimits:
    return BrokerLimits(
        lease=config.intervals.lease,
        archive_size=config.archive.size,
        archive_age=config.archive.age,
        max_message_bytes=config.max_message_bytes,
    )


async def _keep_running(duty: Callable[[], Awaitable[None]]) -> None:
    """Run a loop that must not end; an error nobody foresaw is told, and the loop goes on."""
    while True:
        try:
            await duty()
        except Exception:  # it stands in the log with its traceback; the server must outlive it
            log.exception("后台循环意外出错，即将重新开始")
            await asyncio.sleep(_RESTART_S)
        else:
            return
