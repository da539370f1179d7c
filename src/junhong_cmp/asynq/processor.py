"""Running handlers."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import structlog

from junhong_cmp.asynq.acker import Acker
from junhong_cmp.asynq.admission import Admission
from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import AckKind, LeasedTask
from junhong_cmp.asynq.cancel_requests import CancelRequest
from junhong_cmp.asynq.deadlines import DeadlineSweep
from junhong_cmp.asynq.delivery import find_deadline_s, view_task
from junhong_cmp.asynq.in_flight import CancelCause, InFlight, InFlightTable
from junhong_cmp.asynq.observer import SafeObserver
from junhong_cmp.asynq.processing_task import Handler
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.asynq.verdict import HandlerCancelledError, Judge

log = structlog.stdlib.get_logger(__name__)


class Processor:
    """A processor runs one handler a slot and hands each outcome to the acker.

    A slot is free again when its handler has really ended, never before: a
    handler that ignores its cancellation keeps its slot and its lease.
    """

    def __init__(
        self,
        broker: Broker,
        handler: Handler,
        acker: Acker,
        table: InFlightTable,
        config: ServerConfig,
        *,
        on_slot_free: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._handler = handler
        self._acker = acker
        self._table = table
        self._config = config
        self.admission = Admission.of(config, on_room=on_slot_free)
        self._on_slot_free = on_slot_free
        self._judge = Judge(config)
        self._lease_s = config.intervals.lease.total_seconds()
        self._loop = asyncio.get_running_loop()
        self._observer = SafeObserver(config.observer) if config.observer is not None else None
        self._left = config.max_tasks
        self.deadlines = DeadlineSweep(table, config.cancel_grace, self._observer)
        self.draining = asyncio.Event()
        self.requeued = 0

    @property
    def free_slots(self) -> int:
        """How many more handlers may run, or may still be started at all."""
        free = self._config.concurrency - len(self._table.running)
        return free if self._left is None else min(free, self._left)

    @property
    def exhausted(self) -> bool:
        """Whether all tasks this server was to run have been started."""
        return self._left is not None and self._left <= 0

    def begin(self, leased: LeasedTask, asked_at: float) -> None:
        """Start the handler of a task that was asked for at ``asked_at`` (monotonic seconds)."""
        now_s, now = time.time(), time.monotonic()
        deadline_s = find_deadline_s(leased.message, now_s)
        item = InFlight(
            leased,
            view_task(leased, deadline_s, self.draining, partial(self._write_result, leased)),
            started_s=now_s,
            started_at=now,
            deadline_at=now + deadline_s - now_s,
            lease_good_until=asked_at + self._lease_s,
        )
        self._table.running.add(item)
        if self.admission is not None:
            self.admission.entered(leased.queue, item.task.type)
        if self._left is not None:
            self._left -= 1
        if deadline_s <= now_s:
            item.cause = CancelCause.TIMEOUT
            self._end(item, HandlerCancelledError("任务在开始处理前已超过截止时间"))
            return
        item.runner = self._loop.create_task(self._run(item))
        self.deadlines.watch(item.deadline_at)

    def cancel(self, item: InFlight, cause: CancelCause) -> None:
        """Cancel the handler of ``item`` if it still runs."""
        if item in self._table.running:
            self.deadlines.cancel(item, cause)

    def cancel_task(self, request: CancelRequest) -> None:
        """Cancel every running handler of a task, as an operator asked."""
        for item in [item for item in self._table.running if item.task.id == request.task_id]:
            if request.policy is not None:
                item.cancel_policy = request.policy
            if item.cause is None:
                log.info("收到取消指令，取消任务", task_type=item.task.type, task_id=request.task_id)
                self.cancel(item, CancelCause.REQUESTED)

    def cancel_all(self, cause: CancelCause) -> None:
        """Cancel every running handler."""
        for item in list(self._table.running):
            self.deadlines.cancel(item, cause)

    def close(self) -> None:
        """Let no timer outlive the server."""
        self.deadlines.close()
        if self.admission is not None:
            self.admission.close()

    async def wait_idle(self, patience_s: float) -> bool:
        """Wait until no handler runs; False if ``patience_s`` was not enough."""
        runners = [item.runner for item in self._table.running if item.runner is not None]
        if runners and patience_s > 0:
            await asyncio.wait(runners, timeout=patience_s)
        return not self._table.running

    async def _run(self, item: InFlight) -> None:
        item.entered = True
        error: BaseException | None = None
        try:
            if item.cause is None:
                await self._handler.process_task(item.task)
            else:
                error = HandlerCancelledError(f"任务在开始处理前被取消：{item.cause}")
        except asyncio.CancelledError as cancelled:
            runner = asyncio.current_task()
            if item.cause is None and runner is not None and runner.cancelling():
                self._table.running.discard(item)  # the event loop is going down: the lease will lapse
                raise
            error = cancelled
        except BaseException as raised:  # noqa: BLE001 - not even SystemExit of one handler may end the server
            error = raised
        self._end(item, error)

    def _end(self, item: InFlight, error: BaseException | None) -> None:
        self._table.running.discard(item)
        if self.admission is not None:
            self.admission.left(item.leased.queue, item.task.type)
        try:
            ack = self._judge.judge(item, error)
        except Exception:  # a faulty is_failure callback: the lease lapses, the task comes again
            log.exception("任务结果判定出错，等待租约过期后重新投递", task_type=item.task.type)
            ack = None
        if ack is not None:
            self.requeued += ack.kind is AckKind.REQUEUE
            self._acker.submit(ack, item)
        if self._observer is not None:
            self._observer.task_ended(item, ack, error)
        self._on_slot_free()

    async def _write_result(self, leased: LeasedTask, data: bytes) -> None:
        written = await self._broker.write_result(leased.queue, leased.message.id, data, token=leased.token)
        if not written:
            log.warning("任务已不归本 Worker，结果未写入", queue=leased.queue, task_id=leased.message.id)
