"""The broker: every state transition of a task on the worker's side, each one atomic script."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from junhong_cmp.asynq import broker_ack, broker_lease, broker_presence, broker_upkeep
from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.broker_types import Ack, AckOutcome, DequeueResult, LeasedTask, RepairReport
from junhong_cmp.asynq.cancel_requests import CancelPolicy
from junhong_cmp.asynq.connection import RedisClient


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLimits:
    """The figures of the protocol (internal/rdb/rdb.go) and our own cap on what a worker will decode."""

    lease: timedelta = timedelta(seconds=30)
    archive_size: int = 10_000
    archive_age: timedelta = timedelta(days=90)
    stats_ttl: timedelta = timedelta(days=90)
    max_message_bytes: int = 1024 * 1024


class Broker:
    """A broker moves tasks between the states of a queue.

    All methods raise ``redis.exceptions.RedisError`` when Redis fails. After a lost reply it is safe to call
    any of them again: an ack that had taken effect answers MISSING or SUPERSEDED; tasks of a lost dequeue
    are put back by the next one. ``clock`` gives unix seconds: the protocol counts on the clients'
    wall clocks.
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        limits: BrokerLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._redis = redis
        self._limits = limits if limits is not None else BrokerLimits()
        self._clock = clock
        self._leases = broker_lease.Leases(redis, self._limits.lease, self._limits.max_message_bytes, clock)
        self._acks = broker_ack.AckWriter(
            redis,
            archive=broker_ack.ArchiveLimits(self._limits.archive_size, self._limits.archive_age),
            stats_ttl=self._limits.stats_ttl,
            clock=clock,
        )

    @property
    def limits(self) -> BrokerLimits:
        """The figures this broker works with."""
        return self._limits

    async def dequeue(self, queue: str, count: int, *, owner: str) -> DequeueResult:
        """Take up to ``count`` pending tasks, oldest first, and lease them to ``owner``; one script.

        Ids without a task are dropped; messages too large or undecodable go to the archive with a reason.
        """
        return await self._leases.dequeue(queue, count, owner=owner)

    async def put_back_unanswered(self, queue: str) -> int:
        """Put tasks back that a dequeue of this broker took whose reply got lost; return how many.

        Each dequeue does so first, at most once a second; call it for queues that are not being asked.
        """
        return await self._leases.put_back_unanswered(queue)

    async def ack(self, queue: str, acks: Sequence[Ack]) -> list[AckOutcome]:
        """Hand tasks back, any mix of kinds; one script for each 500, outcomes in the order of ``acks``."""
        return await self._acks.ack(queue, acks)

    async def extend_leases(self, queue: str, tasks: Sequence[LeasedTask]) -> list[str]:
        """Renew leases, update ``lease_until`` and return the ids whose lease is lost to somebody else."""
        return await self._leases.extend(queue, tasks)

    async def expired_leases(self, queue: str, cutoff_s: float, *, limit: int = 500) -> list[LeasedTask]:
        """Return tasks whose lease ran out at or before ``cutoff_s``, oldest first.

        Leases without a task are dropped, undecodable messages quarantined: neither stops the others.
        """
        return await self._leases.expired(queue, cutoff_s, limit)

    async def write_result(self, queue: str, task_id: str, data: bytes, *, token: str = "") -> bool:
        """Store the result of an active task; False if the task is gone or ``token`` is not its owner."""
        return await self._leases.write_result(queue, task_id, data, token=token)

    async def forward(self, queue: str) -> int:
        """Move due tasks from ``scheduled`` and ``retry`` to ``pending`` or their group; return how many."""
        return await broker_upkeep.forward(self._redis, queue, self._clock())

    async def repair_orphans(self, queue: str) -> RepairReport:
        """Bring ``active`` and ``lease`` in line with each other and with the task hashes.

        An active task without a lease gets one that ends now, so its owner can renew it and the recoverer
        takes it otherwise.
        """
        return await broker_upkeep.repair_orphans(self._redis, queue, self._clock())

    async def delete_expired_completed(self, queue: str, limit: int = 100) -> int:
        """Delete completed tasks whose retention is over, up to ``limit``; return how many."""
        return await broker_upkeep.delete_expired_completed(self._redis, queue, self._clock(), limit)

    async def register_queue(self, *queues: str) -> None:
        """Enter queues in the registry; repeated by heartbeats, it heals a flushed Redis."""
        await broker_presence.register_queues(self._redis, queues)

    async def write_server_state(
        self, info: ServerInfo, workers: Sequence[WorkerInfo], ttl: timedelta = timedelta(seconds=10)
    ) -> None:
        """Show this server and the tasks it works on to the tools for the time ``ttl``."""
        await broker_presence.write_server_state(self._redis, info, workers, self._clock(), ttl)

    async def clear_server_state(self, info: ServerInfo) -> None:
        """Remove what :meth:`write_server_state` wrote."""
        await broker_presence.clear_server_state(self._redis, info)

    async def publish_cancel(self, task_id: str, policy: CancelPolicy | None = None) -> int:
        """Ask whoever runs the task to cancel it; return how many servers heard.

        ``policy`` says what becomes of it, otherwise the server's own does. Go's servers always retry.
        """
        return await broker_presence.publish_cancel(self._redis, task_id, policy)

    async def pause(self, queue: str) -> bool:
        """Stop all servers from taking tasks of ``queue``; False if it was paused already."""
        return await broker_presence.pause(self._redis, queue, self._clock())

    async def unpause(self, queue: str) -> bool:
        """Undo :meth:`pause`; False if it was not paused."""
        return await broker_presence.unpause(self._redis, queue)

    async def pending_count(self, queue: str) -> int:
        """Return how many tasks wait in ``queue``."""
        return await broker_presence.pending_count(self._redis, queue)

    async def queue_flow(self, queue: str) -> tuple[int, int]:
        """Return how many tasks wait in ``queue``, and how many it has processed since it exists."""
        return await broker_presence.queue_flow(self._redis, queue)
