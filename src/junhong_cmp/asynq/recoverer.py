"""Tasks whose worker has vanished come back."""

import math
import time
from collections.abc import Sequence

import structlog

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind, AckOutcome, LeasedTask
from junhong_cmp.asynq.delivery import find_deadline_s, view_task
from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.in_flight import InFlightTable
from junhong_cmp.asynq.observer import SafeObserver
from junhong_cmp.asynq.retry import choose_delay
from junhong_cmp.asynq.server_config import ServerConfig

log = structlog.stdlib.get_logger(__name__)

_LEASE_EXPIRED = "任务租约过期：处理它的 Worker 已失联"
_POISON = "毒丸任务已归档"


class LeaseExpiredError(AsynqError):
    """What a retry-delay function is given for a task whose worker has vanished."""


class Recoverer:
    """A recoverer gives tasks with a long-expired lease another try, unless they are poison.

    The try costs the task none of its retries: it was its worker that failed. How
    often that happened is counted apart, and a task that loses its worker again and
    again is archived before it takes down the next one.

    It repairs the queue first: an id in ``active`` without lease gets one that
    has expired, a lease whose task is gone is removed. Tasks this very server
    still runs are left to its own heartbeats, which may just be late.
    """

    def __init__(self, broker: Broker, table: InFlightTable, config: ServerConfig) -> None:
        self._broker = broker
        self._table = table
        self._config = config
        self._margin_s = config.intervals.recovery_margin.total_seconds()

    async def recover(self, queue: str) -> None:
        """Repair ``queue`` and take back its abandoned tasks."""
        await self._broker.repair_orphans(queue)
        while await self._take_back(queue):  # a bounded number a script
            pass

    async def _take_back(self, queue: str) -> int:
        cutoff_s = int(time.time() - self._margin_s)
        expired = await self._broker.expired_leases(queue, cutoff_s)
        own = {(item.leased.token, item.task.id) for item in self._table.snapshot()}
        foreign = [task for task in expired if (task.token, task.message.id) not in own]
        acks = [self._second_chance(task, cutoff_s) for task in foreign]
        if not acks:
            return 0
        outcomes = await self._broker.ack(queue, acks)
        taken = [ack for ack, outcome in zip(acks, outcomes, strict=True) if outcome is AckOutcome.OK]
        poison = [ack for ack in taken if ack.kind is AckKind.ARCHIVE]
        if self._config.observer is not None:
            self._report(queue, taken, SafeObserver(self._config.observer))
        for ack in poison:
            log.error(_POISON, queue=queue, reason=ack.error, **_facts(ack.task))
        if taken:
            log.warning("租约过期的任务已收回", queue=queue, count=len(taken), archived=len(poison))
        return len(taken)

    def _report(self, queue: str, taken: Sequence[Ack], observer: SafeObserver) -> None:
        for ack in taken:
            observer.task_recovered(queue, ack.task.message.type, poison=ack.kind is AckKind.ARCHIVE)

    def _second_chance(self, leased: LeasedTask, cutoff_s: int) -> Ack:
        now = time.time()
        policy = self._config.poison
        since = now - policy.window.total_seconds()
        recoveries = 1 + sum(at >= since for at in leased.recovered_at)
        if recoveries >= policy.recoveries:
            hours = policy.window.total_seconds() / 3600
            reason = f"{_POISON}：{hours:g} 小时内 {recoveries} 次使处理它的 Worker 失联"
            return Ack(kind=AckKind.ARCHIVE, task=leased, error=reason, expired_before=cutoff_s)
        view = view_task(leased, find_deadline_s(leased.message, now))
        delay = choose_delay(self._config.retry_delay, LeaseExpiredError(_LEASE_EXPIRED), view)
        return Ack(
            kind=AckKind.RETRY,
            task=leased,
            error=_LEASE_EXPIRED,
            is_failure=False,
            at=math.ceil(now + delay.total_seconds()),
            expired_before=cutoff_s,
        )


def _facts(leased: LeasedTask) -> dict[str, object]:
    message = leased.message
    return {"task_type": message.type, "task_id": message.id, "retried": message.retried}
