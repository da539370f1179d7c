"""The background modules of a worker, each wrapped as something that starts once and stops once."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import structlog

from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.asynq.scheduler import Scheduler
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.config import Settings
from junhong_cmp.errors import CriticalLoopError
from junhong_cmp.lifecycle import Module
from junhong_cmp.polling.initializer import PollingInitializer
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.worker.cron import cron_entries
from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.roles import ModuleName, enabled_modules
from junhong_cmp.worker.services import Services
from junhong_cmp.worker.task_handler import TaskHandler

log = structlog.stdlib.get_logger(__name__)

HEARTBEAT_CONNECTIONS: Final = 2
CANCEL_AGAIN_S: Final = 0.5
"""A library may swallow a cancellation that arrives together with a reply; then it is asked again."""

LOOP_TASKS: Final[Mapping[ModuleName, str]] = {
    ModuleName.POLLING_INITIALIZER: "polling:initializer",
    ModuleName.POLLING_SCHEDULER: "polling:scheduler",
    ModuleName.ASYNQ_SCHEDULER: "asynq-scheduler",
}
"""The names their background tasks run under."""


class Loop(Protocol):
    """A part that runs in the background between its start and its stop."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End."""
        ...


class QueueServerModule:
    """A queue server module consumes tasks; its stop drains, then lets handlers finish their batches."""

    name = ModuleName.QUEUE_SERVER

    def __init__(self, server: Server, handler: TaskHandler) -> None:
        self._server = server
        self._handler = handler

    @property
    def in_flight(self) -> int:
        """Number of tasks being processed now."""
        return self._server.in_flight

    def pause_fetching(self) -> None:
        """Take no further tasks."""
        log.info("收到 SIGTSTP，停止取新任务", in_flight=self.in_flight)
        self._server.pause_fetching()

    async def start(self) -> None:
        """Start fetching."""
        await self._server.start()

    async def stop(self) -> None:
        """Drain, then put back what is unfinished."""
        try:
            await self._server.stop()
        finally:
            await self._handler.close()


class SingletonModule:
    """A singleton module runs a loop only one process of a fleet should run, and reports its death."""

    def __init__(self, name: ModuleName, loop: Loop, watch: LoopWatch) -> None:
        self.name = name
        self._loop = loop
        self._watch = watch

    async def start(self) -> None:
        """Start the loop and watch it."""
        await self._loop.start()
        self._watch.begin()

    async def stop(self) -> None:
        """Stop watching, then the loop."""
        self._watch.end()
        stop = asyncio.create_task(self._loop.stop(), name=f"stop:{self.name}")
        try:
            while not (await asyncio.wait({stop}, timeout=CANCEL_AGAIN_S))[0]:
                self._watch.cancel_again()
        except asyncio.CancelledError:
            stop.cancel()
            raise
        error = stop.exception()
        if error is not None and not self._watch.has_reported(error):
            raise error


class WorkerModules:
    """Worker modules are built for one role: the others' modules are not even constructed."""

    def __init__(
        self,
        services: Services,
        settings: Settings,
        *,
        on_failure: Callable[[CriticalLoopError], None],
    ) -> None:
        self._services = services
        self._settings = settings
        self._on_failure = on_failure
        self._queue_server = self._build_queue_server()

    @property
    def in_flight(self) -> int:
        """Number of tasks being processed now."""
        return self._queue_server.in_flight

    def pause_fetching(self) -> None:
        """Take no further tasks; everything else goes on."""
        self._queue_server.pause_fetching()

    def enabled(self) -> list[Module]:
        """Return the role's modules in start order."""
        names = enabled_modules(self._settings.worker.role)
        singletons = self._build_singletons() if ModuleName.POLLING_SCHEDULER in names else {}
        modules: dict[ModuleName, Module] = {ModuleName.QUEUE_SERVER: self._queue_server, **singletons}
        return [modules[name] for name in names]

    def _build_queue_server(self) -> QueueServerModule:
        handler = TaskHandler(self._services)
        config = ServerConfig(
            concurrency=self._settings.queue.concurrency,
            queues=self._settings.queue.weights,
            strict_priority=self._settings.queue.strict_priority,
            shutdown_timeout=self._settings.shutdown_grace,
        )
        server = Server(
            self._services.redis,
            self._services.blocking_redis,
            handler,
            config,
            heartbeat_redis=self._open_heartbeat,
        )
        return QueueServerModule(server, handler)

    def _open_heartbeat(self) -> RedisClient:
        return open_redis(self._settings.redis.url.get_secret_value(), pool_size=HEARTBEAT_CONNECTIONS)

    def _build_singletons(self) -> dict[ModuleName, Module]:
        services = self._services
        entries = cron_entries(redrive_every=self._settings.imports.redrive_every)
        initializer = PollingInitializer(
            services.pool,
            services.polling_queue,
            services.polling_config,
            settings=services.polling_settings,
        )
        polling_scheduler = PollingScheduler(
            redis=services.redis,
            queue_manager=services.polling_queue,
            config_manager=services.polling_config,
            concurrency=services.polling_concurrency,
            client=services.client,
            stats=services.polling_stats,
            has_gateway=services.gateway is not None,
            on_lost_data=initializer.report_lost_data,
            settings=services.polling_settings,
        )
        loops: dict[ModuleName, Loop] = {
            ModuleName.POLLING_INITIALIZER: initializer,
            ModuleName.POLLING_SCHEDULER: polling_scheduler,
            ModuleName.ASYNQ_SCHEDULER: Scheduler(services.redis, entries),
        }
        return {
            name: SingletonModule(name, loop, LoopWatch(LOOP_TASKS[name], self._on_failure))
            for name, loop in loops.items()
        }
