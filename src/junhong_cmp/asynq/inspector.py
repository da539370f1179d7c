"""The inspector: what operators see of queues, tasks and processes, and do to them (inspector.go)."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from junhong_cmp.asynq import broker_presence
from junhong_cmp.asynq.asynq_pb2 import SchedulerEnqueueEvent, SchedulerEntry
from junhong_cmp.asynq.broker_ack import ArchiveLimits
from junhong_cmp.asynq.cancel_requests import CancelPolicy
from junhong_cmp.asynq.client import DEFAULT_MAX_PAYLOAD_BYTES
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.errors import PayloadTooLargeError
from junhong_cmp.asynq.inspector_check import CheckReport, QueueCheck
from junhong_cmp.asynq.inspector_errors import TaskNotRunningError
from junhong_cmp.asynq.inspector_operations import Operation, TaskOperator
from junhong_cmp.asynq.inspector_processes import ProcessReader, queue_slot
from junhong_cmp.asynq.inspector_queues import QueueDesk
from junhong_cmp.asynq.inspector_tasks import TaskReader
from junhong_cmp.asynq.inspector_types import (
    BulkReport,
    ClusterNodeInfo,
    DailyStats,
    GroupInfo,
    QueueInfo,
    ServerStatus,
    TaskDetails,
)
from junhong_cmp.asynq.states import TaskState

__all__ = ["DailyStats", "Inspector", "QueueInfo", "ServerStatus"]

PAGE_SIZE: Final = 30
DEFAULT_ARCHIVE: Final = ArchiveLimits(size=10_000, age=timedelta(days=90))


class Inspector:
    """An inspector reads queues, tasks and processes, and does to tasks what an operator decides.

    All operations take the queue's name first and raise :class:`QueueNotFoundError` if it is not registered.
    Bulk operations work in steps of a hundred tasks, so that no step holds up the workers; what a worker
    has in its hands is never touched. ``archive`` are the limits the archive is kept within when something is
    put there. ``clock`` gives unix seconds.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        archive: ArchiveLimits = DEFAULT_ARCHIVE,
        max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._redis = redis
        self._archive = archive
        self._clock = clock
        self._max_payload_bytes = max_payload_bytes
        self._desk = QueueDesk(redis, clock)
        self._reader = TaskReader(redis, clock)
        self._operator = TaskOperator(redis, archive, clock)
        self._processes = ProcessReader(redis, clock)

    async def queues(self) -> list[QueueInfo]:
        """Return the figures of all registered queues by name, in two round trips however many there are.

        Memory is left out on purpose: ``MEMORY USAGE`` is slow, and forbidden on managed servers.
        """
        return await self._desk.figures(await self._desk.names())

    async def queue(self, queue: str) -> QueueInfo:
        """Return the figures of one queue."""
        await self._desk.require(queue)
        (info,) = await self._desk.figures([queue])
        return info

    async def groups(self, queue: str) -> list[GroupInfo]:
        """Return the groups with waiting tasks, by name."""
        await self._desk.require(queue)
        return await self._desk.groups(queue)

    async def history(self, queue: str, days: int = 7) -> list[DailyStats]:
        """Return what a queue did on each of the last ``days`` UTC days, today first; 90 days are kept."""
        return await self._desk.history(queue, days)

    async def pause_queue(self, queue: str) -> None:
        """Stop all servers from taking tasks; :class:`QueuePauseError` if the queue is paused already."""
        await self._desk.pause(queue)

    async def unpause_queue(self, queue: str) -> None:
        """Let servers take tasks again; :class:`QueuePauseError` if the queue is not paused."""
        await self._desk.unpause(queue)

    async def delete_queue(self, queue: str, *, force: bool = False) -> int:
        """Delete a queue with all its keys: tasks, locks, groups, counters; return how many keys.

        The queue is paused meanwhile. Once begun, it can be repeated after a failure until it is done.

        Raises:
            QueueNotEmptyError: a worker has one of its tasks; without ``force``: there is any task.

        """
        return await self._desk.delete(queue, force=force)

    async def task(self, queue: str, task_id: str) -> TaskDetails:
        """Return a task with its result and its next run; :class:`TaskNotFoundError` if there is none."""
        await self._desk.require(queue)
        return await self._reader.read(queue, task_id)

    async def list_tasks(
        self, queue: str, state: TaskState, *, group: str = "", page: int = 1, size: int = PAGE_SIZE
    ) -> list[TaskDetails]:
        """Return a page of the tasks in a state, oldest first; ids without a task are not shown.

        Pages count from 1. ``group`` is which one, for ``aggregating``.
        """
        if page < 1 or size < 1:
            raise ValueError("页码与每页条数从 1 起")
        await self._desk.require(queue)
        return await self._reader.page(queue, state, group=group, first=(page - 1) * size, count=size)

    async def run_task(self, queue: str, task_id: str) -> None:
        """Put a task into ``pending`` now.

        Raises:
            TaskNotFoundError: there is no such task.
            TaskStateError: it is pending already, or a worker has it.

        """
        await self._one(Operation.RUN, queue, task_id)

    async def archive_task(self, queue: str, task_id: str) -> None:
        """Put a task into the archive; errors as :meth:`run_task`."""
        await self._one(Operation.ARCHIVE, queue, task_id)

    async def delete_task(self, queue: str, task_id: str) -> None:
        """Delete a task and the unique lock it holds; errors as :meth:`run_task`."""
        await self._one(Operation.DELETE, queue, task_id)

    async def run_all(self, queue: str, state: TaskState, *, group: str = "") -> BulkReport:
        """Put all scheduled, retry, archived or (of one ``group``) aggregating tasks into ``pending``.

        Raises:
            UnsupportedStateError: ``state`` is none of these.

        """
        return await self._all(Operation.RUN, queue, state, group)

    async def archive_all(self, queue: str, state: TaskState, *, group: str = "") -> BulkReport:
        """Archive all pending, scheduled, retry or aggregating tasks; as :meth:`run_all`."""
        return await self._all(Operation.ARCHIVE, queue, state, group)

    async def delete_all(self, queue: str, state: TaskState, *, group: str = "") -> BulkReport:
        """Delete all tasks of a state but ``active``, with the locks they hold; as :meth:`run_all`."""
        return await self._all(Operation.DELETE, queue, state, group)

    async def update_task_payload(self, queue: str, task_id: str, payload: bytes) -> None:
        """Give a scheduled task another payload.

        A unique lock made from the payload is moved to the new one, with the time it has left.

        Raises:
            PayloadTooLargeError: it is larger than clients may enqueue.
            TaskNotFoundError: there is no such task.
            TaskStateError: it is not scheduled.
            InvalidMessageError: its message is broken.
            DuplicateTaskError: another task of the new payload holds the lock.

        """
        if len(payload) > self._max_payload_bytes:
            raise PayloadTooLargeError(len(payload), self._max_payload_bytes)
        await self._desk.require(queue)
        await self._operator.update_payload(queue, task_id, payload)

    async def cancel_processing(self, task_id: str, *, policy: CancelPolicy | None = None) -> int:
        """Ask whoever runs the task to cancel it; return how many servers heard.

        ``policy`` says what becomes of the task: tried again, set aside or dropped. Without it the server's
        own applies; Go's servers know none and try again.
        """
        return await broker_presence.publish_cancel(self._redis, task_id, policy)

    async def cancel_running(self, task_id: str, *, policy: CancelPolicy | None = None) -> int:
        """Cancel a task somebody works on, as :meth:`cancel_processing` does, which asks without looking.

        Raises:
            TaskNotRunningError: no queue holds such a task, or nobody works on it; nothing was sent.

        """
        found = await self._reader.find(await self._desk.names(), task_id)
        if all(task.state is not TaskState.ACTIVE for task in found):
            raise TaskNotRunningError(task_id, [(task.queue, task.state) for task in found])
        return await self.cancel_processing(task_id, policy=policy)

    async def check(self, queue: str, *, repair: bool = False) -> CheckReport:
        """Look for what does not fit together in a queue, and mend it with ``repair``; it may be in use.

        Finds ids without task, tasks without a place, active tasks without a lease and leases without one,
        locks whose holder is gone, and what broken aggregations left.
        """
        check = QueueCheck(self._redis, queue, repair=repair, archive=self._archive, clock=self._clock)
        return await check.run()

    async def servers(self) -> list[ServerStatus]:
        """Return the living servers with the tasks they work on."""
        return await self._processes.servers()

    async def scheduler_entries(self) -> list[SchedulerEntry]:
        """Return the cron entries of all living schedulers; n schedulers show an entry n times."""
        return await self._processes.scheduler_entries()

    async def enqueue_events(
        self, entry_id: str, limit: int = PAGE_SIZE, *, page: int = 1
    ) -> list[SchedulerEnqueueEvent]:
        """Return a page of the firings of a cron entry, newest first."""
        return await self._processes.enqueue_events(entry_id, (page - 1) * limit, limit)

    async def cluster_nodes(self, queue: str) -> list[ClusterNodeInfo]:
        """Return the nodes that serve a queue, primary first; none if Redis is not a cluster."""
        return await self._processes.cluster_nodes(queue)

    @staticmethod
    def cluster_key_slot(queue: str) -> int:
        """Return the cluster slot all keys of a queue lie in."""
        return queue_slot(queue)

    async def _one(self, operation: Operation, queue: str, task_id: str) -> None:
        await self._desk.require(queue)
        await self._operator.one(operation, queue, task_id)

    async def _all(self, operation: Operation, queue: str, state: TaskState, group: str) -> BulkReport:
        await self._desk.require(queue)
        return await self._operator.all(operation, queue, state, group=group)
