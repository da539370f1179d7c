"""The background modules of a worker, each wrapped as something that starts once and stops once."""

from collections.abc import Callable
from functools import cached_property
from typing import Final

import structlog

from junhong_cmp.asynq.connection import RedisClient, open_redis
from junhong_cmp.asynq.scheduler import Scheduler
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.config import LeaseConflict, LeaseMode, Settings
from junhong_cmp.errors import CriticalLoopError
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.elector import LeaderElector
from junhong_cmp.leadership.term import Term
from junhong_cmp.leadership.times import LeaseTimes
from junhong_cmp.lifecycle import Module
from junhong_cmp.polling.initializer import PollingInitializer
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.polling.tasks import IMPORT_QUEUE
from junhong_cmp.worker.cron import cron_entries
from junhong_cmp.worker.foreign_lease import foreign_lease
from junhong_cmp.worker.labels import WorkerLabels
from junhong_cmp.worker.leadership import Leadership
from junhong_cmp.worker.loop_watch import LoopWatch
from junhong_cmp.worker.report import LEADS, NONE
from junhong_cmp.worker.roles import SCHEDULING_ROLES, ModuleName, enabled_modules
from junhong_cmp.worker.services import Services
from junhong_cmp.worker.singletons import LOOP_TASKS, Loop, SingletonModule
from junhong_cmp.worker.task_handler import TaskHandler

log = structlog.stdlib.get_logger(__name__)

HEARTBEAT_CONNECTIONS: Final = 2
LEASE_CONNECTIONS: Final = 2
IMPORTS_AT_ONCE: Final = 2
"""More would hold slots and memory for minutes, and gain nothing: their inserts wait for one another."""


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
        self._leadership = self._build_leadership()

    @property
    def in_flight(self) -> int:
        """Number of tasks being processed now."""
        return self._queue_server.in_flight

    def pause_fetching(self) -> None:
        """Take no further tasks; everything else goes on."""
        self._queue_server.pause_fetching()

    async def scheduling(self) -> str:
        """Return what this process is among those that may schedule, once the first election has told it.

        Raises:
            ConfigError: another process leads, and this one is told to end then.

        """
        if self._leadership is None:
            return LEADS if self._settings.worker.role in SCHEDULING_ROLES else NONE
        elector = self._leadership.elector
        if self._settings.lease.on_conflict is LeaseConflict.STANDBY:
            return str(await elector.first_answer())
        state = await elector.decision()
        if elector.rival is not None:
            raise foreign_lease(elector.rival)
        return str(state)

    def enabled(self) -> list[Module]:
        """Return the role's modules in start order."""
        names = enabled_modules(self._settings.worker.role)
        singletons = self._build_singletons() if self._settings.worker.role in SCHEDULING_ROLES else {}
        modules: dict[ModuleName, Module] = {ModuleName.QUEUE_SERVER: self._queue_server, **singletons}
        return [modules[name] for name in names]

    def _build_queue_server(self) -> QueueServerModule:
        handler = TaskHandler(self._services)
        weights = self._settings.queue.weights
        config = ServerConfig(
            concurrency=self._settings.queue.concurrency,
            queues=weights,
            queue_limits={IMPORT_QUEUE: IMPORTS_AT_ONCE} if IMPORT_QUEUE in weights else {},
            strict_priority=self._settings.queue.strict_priority,
            shutdown_timeout=self._settings.shutdown_grace,
            labels=WorkerLabels.of(self._settings).as_mapping(),
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
        if self._leadership is not None:
            return self._leadership.modules()
        return {module.name: module for module in self._build_loops(None)}

    def _build_leadership(self) -> Leadership | None:
        settings = self._settings
        if settings.worker.role not in SCHEDULING_ROLES or settings.lease.mode is LeaseMode.OFF:
            return None
        times = LeaseTimes(ttl=settings.lease.ttl, renew=settings.lease.renew, retry=settings.lease.retry)

        def open_lease_redis() -> RedisClient:
            return open_redis(
                settings.redis.url.get_secret_value(),
                pool_size=LEASE_CONNECTIONS,
                socket_timeout=min(settings.redis.socket_timeout, times.attempt),
            )

        candidate = Candidate.of_this_process(settings.worker.instance_name)
        must_lead = settings.lease.on_conflict is LeaseConflict.EXIT
        elector = LeaderElector(candidate, times, open_lease_redis, must_lead=must_lead)
        return Leadership(elector, self._build_loops, on_failure=self._on_failure)

    @cached_property
    def _initializer(self) -> PollingInitializer:
        """The one initializer of all terms: it follows the polling configuration all the time."""
        services = self._services
        return PollingInitializer(
            services.pool,
            services.polling_queue,
            services.polling_config,
            settings=services.polling_settings,
        )

    def _build_loops(self, term: Term | None) -> list[SingletonModule]:
        """Build what the leader runs, in start order; ``term`` is None when no lease decides who leads."""
        services = self._services
        entries = cron_entries(redrive_every=self._settings.imports.redrive_every)
        polling_scheduler = PollingScheduler(
            pool=services.pool,
            redis=services.redis,
            queue_manager=services.polling_queue,
            config_manager=services.polling_config,
            concurrency=services.polling_concurrency,
            client=services.client,
            stats=services.polling_stats,
            has_gateway=services.gateway is not None,
            on_lost_data=self._initializer.report_lost_data,
            leased=term,
            settings=services.polling_settings,
            clock=services.clock,
        )
        loops: dict[ModuleName, Loop] = {
            ModuleName.POLLING_INITIALIZER: self._initializer,
            ModuleName.POLLING_SCHEDULER: polling_scheduler,
            ModuleName.ASYNQ_SCHEDULER: Scheduler(
                services.redis,
                entries,
                clock=lambda: services.clock.now().timestamp(),
                may_fire=lambda: term is None or term.trusted,
            ),
        }
        return [
            SingletonModule(name, loop, LoopWatch(LOOP_TASKS[name], self._on_failure))
            for name, loop in loops.items()
        ]
