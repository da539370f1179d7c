"""The server: it takes tasks from queues, runs handlers and writes back what became of each task."""

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from junhong_cmp.asynq.asynq_pb2 import ServerInfo
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.engine import Connections, Engine, StopReport
from junhong_cmp.asynq.errors import AsynqError
from junhong_cmp.asynq.heartbeater import to_timestamp
from junhong_cmp.asynq.processing_task import Handler
from junhong_cmp.asynq.server_config import ServerConfig

__all__ = ["Server", "ServerStateError", "StopReport"]


class ServerStateError(AsynqError):
    """A server was started a second time; make a new one instead."""


class Server:
    """A server processes the tasks of its queues until it is stopped.

    It owns neither client: the caller closes them after :meth:`stop`.
    ``blocking_redis`` is used for blocking waits and for the cancel channel only.
    Of its pool two connections are for other things than waiting, so with more
    queues than ``pool_size - 2`` those of lowest priority are polled each second,
    all in one round trip, instead of watched. ``heartbeat_redis`` opens a
    client that the server does own; with it, leases are kept by a thread of their
    own and survive a blocked event loop.
    """

    def __init__(
        self,
        redis: RedisClient,
        blocking_redis: RedisClient,
        handler: Handler,
        config: ServerConfig,
        *,
        heartbeat_redis: Callable[[], RedisClient] | None = None,
    ) -> None:
        self._connections = Connections(redis, blocking_redis, heartbeat_redis)
        self._handler = handler
        self._config = config
        self._id = str(uuid.uuid4())
        self._engine: Engine | None = None
        self._stopping: asyncio.Task[StopReport] | None = None

    @property
    def id(self) -> str:
        """The identity this server shows to the tools and leases tasks under."""
        return self._id

    @property
    def in_flight(self) -> int:
        """Number of handlers running now."""
        return self._engine.in_flight if self._engine is not None else 0

    @property
    def abandoned(self) -> int:
        """Number of handlers that ignore their cancellation; each keeps its slot and its lease."""
        return self._engine.abandoned if self._engine is not None else 0

    async def start(self) -> None:
        """Start fetching; needs no reachable Redis, a server waits for it with back-off.

        Raises:
            ServerStateError: the server has been started before.

        """
        if self._engine is not None:
            raise ServerStateError("任务服务器只能启动一次，请创建新的实例")
        self._engine = Engine(self._connections, self._handler, self._config, self._describe())
        self._engine.start()

    def pause_fetching(self) -> None:
        """Take no further tasks (SIGTSTP); what runs goes on, and so do leases and acks."""
        if self._engine is not None:
            self._engine.stop_fetching()

    def drain(self) -> None:
        """Take no further tasks and set ``draining`` for the running ones; a handler may ask for it."""
        if self._engine is not None:
            self._engine.drain()

    async def wait_drained(self) -> None:
        """Wait for a drain, asked for or by ``max_tasks``, and for the end of the last handler.

        The server still keeps leases and writes results: :meth:`stop` comes after.
        """
        if self._engine is not None:
            await self._engine.wait_drained()

    async def stop(self) -> StopReport:
        """Drain and stop; asked again, return the same report.

        Handlers get the grace period to end, then are cancelled; the unfinished
        tasks go back to the head of their queues. Returns within the grace period
        plus two seconds whatever Redis does. A stop that has begun goes on even if
        its caller is cancelled.
        """
        if self._engine is None:
            return StopReport(completed=0, requeued=0, abandoned=0)
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._engine.stop())
        return await asyncio.shield(self._stopping)

    def _describe(self) -> ServerInfo:
        return ServerInfo(
            host=socket.gethostname() or "unknown-host",
            pid=os.getpid(),
            server_id=self._id,
            concurrency=self._config.concurrency,
            queues=dict(self._config.queues),
            strict_priority=self._config.strict_priority,
            status="active",
            start_time=to_timestamp(datetime.now(UTC)),
            labels=dict(self._config.labels),
        )
