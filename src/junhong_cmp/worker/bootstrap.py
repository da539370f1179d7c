"""Composition by hand: every shared dependency of a worker is opened, wired and closed here."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
from pydantic import SecretStr

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient, open_blocking_redis, open_redis
from junhong_cmp.clock import Clock
from junhong_cmp.config import Settings
from junhong_cmp.db.pool import Pool, open_pool
from junhong_cmp.db.schema import check_schema
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.gateway.http import open_http_gateway
from junhong_cmp.gateway.limits.change_gap import RedisChangeGap
from junhong_cmp.gateway.transport import GatewayTimeouts
from junhong_cmp.gateway.tuning import GatewayTuning
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shared_clock import SharedClock
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.storage.store import Storage, open_storage
from junhong_cmp.worker.credentials import read_credentials
from junhong_cmp.worker.redis_checks import check_redis
from junhong_cmp.worker.services import Services
from junhong_cmp.worker.start_gate import StartGate

log = structlog.stdlib.get_logger(__name__)

CLOSE_LIMIT: Final = timedelta(seconds=1)
"""How long closing one dependency may take; what is lost then is lost to a broken connection."""
SLOT_MARGIN: Final = timedelta(seconds=15)
"""How much longer than a turn its in-flight slot lives."""


@dataclass(frozen=True, slots=True)
class _Opened:
    clock: SharedClock
    redis: RedisClient
    blocking_redis: RedisClient
    pool: Pool
    storage: Storage | None
    gateway: GatewayClient | None


class BootstrapWorker:
    """A bootstrap worker opens what all roles share, in order, and closes it in reverse."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._opened = AsyncExitStack()

    async def open(self) -> Services:
        """Wait for Redis, PostgreSQL and the schema, then wire everything.

        Raises:
            ConfigError, SchemaOutdatedError, DependencyUnavailableError: see :class:`StartGate`.

        """
        gate = StartGate(self._settings.start_limit, self._clock)
        # First what needs no network: a wrong address or key is told before anything is waited for.
        storage = self._open_storage()
        redis, blocking_redis = self._make_redis()
        clock = SharedClock(redis, own=self._clock)
        gateway = await self._open_gateway(redis, clock)
        await self._await_redis(gate, redis)
        await clock.start()
        self._close_later("时钟", clock.stop)
        pool = await self._open_postgres(gate)
        return await self._wire(gate, _Opened(clock, redis, blocking_redis, pool, storage, gateway))

    async def close(self) -> None:
        """Close what was opened, last first; one that fails or hangs keeps no other open."""
        await self._opened.aclose()

    def _close_later(self, name: str, close: Callable[[], Awaitable[Any]]) -> None:
        async def close_in_time() -> None:
            try:
                async with asyncio.timeout(CLOSE_LIMIT.total_seconds()):
                    await close()
            except Exception as error:  # noqa: BLE001 - whatever a broken connection raises; the rest must close
                log.warning("依赖未能正常关闭", dependency=name, error=type(error).__name__)

        self._opened.push_async_callback(close_in_time)

    def _open_storage(self) -> Storage | None:
        url = _revealed(self._settings.storage.url)
        return open_storage(url) if url else None

    def _make_redis(self) -> tuple[RedisClient, RedisClient]:
        settings = self._settings.redis
        url = settings.url.get_secret_value()
        redis = open_redis(url, pool_size=settings.pool_size, socket_timeout=settings.socket_timeout)
        self._close_later("Redis", redis.aclose)
        blocking_redis = open_blocking_redis(url)
        self._close_later("Redis", blocking_redis.aclose)
        return redis, blocking_redis

    async def _await_redis(self, gate: StartGate, redis: RedisClient) -> None:
        await gate.wait_for("Redis", lambda: redis.execute_command("PING"))
        await check_redis(redis, self._settings.redis.url.get_secret_value())

    async def _open_postgres(self, gate: StartGate) -> Pool:
        settings = self._settings.postgres

        async def connect() -> Pool:
            return await open_pool(
                settings.dsn.get_secret_value(),
                max_size=settings.pool_size,
                statement_timeout=settings.statement_timeout,
                application_name=f"junhong-{self._settings.worker.role.value}",
                pgbouncer=settings.pgbouncer,
            )

        pool = await gate.wait_for("PostgreSQL", connect)
        self._close_later("PostgreSQL", lambda: _close_pool(pool))

        async def check() -> None:
            async with pool.acquire() as conn:
                await check_schema(conn)

        await gate.wait_for("PostgreSQL 库表", check)
        return pool

    def _notifying_dsn(self) -> str | None:
        settings = self._settings.postgres
        return None if settings.pgbouncer else settings.dsn.get_secret_value()

    async def _open_gateway(self, redis: RedisClient, clock: Clock) -> GatewayClient | None:
        settings = self._settings.gateway
        url = _revealed(settings.url)
        if not url:
            return None
        credentials = read_credentials(settings)
        gateway = open_http_gateway(
            base_url=url,
            credentials=credentials.named,
            default_credential=credentials.default,
            tuning=GatewayTuning(
                timeouts=GatewayTimeouts(
                    connect=settings.connect_timeout,
                    read=settings.read_timeout,
                    total=settings.total_timeout,
                ),
                change_gap=RedisChangeGap(redis),
                clock=clock,
            ),
            allow_http=settings.allow_http,
            allowed_hosts=settings.allowed_hosts,
        )
        await gateway.open()
        self._close_later("网关", gateway.close)
        return gateway

    async def _wire(self, gate: StartGate, opened: _Opened) -> Services:
        polling = self._polling_settings()
        queue = self._open_queue(opened, polling)
        concurrency = self._open_concurrency(opened, polling)
        config = PollingConfigManager(opened.pool, self._notifying_dsn())
        stats = PollStats(opened.pool, clock=opened.clock)
        base = PollingBase(
            pool=opened.pool,
            queue_manager=queue,
            config_manager=config,
            concurrency=concurrency,
            gateway=opened.gateway,
            stats=stats,
            settings=polling,
            clock=opened.clock,
        )
        self._close_later("轮询流程", base.close)
        await self._start_loops(gate, config, stats)
        return Services(
            clock=opened.clock,
            redis=opened.redis,
            blocking_redis=opened.blocking_redis,
            pool=opened.pool,
            storage=opened.storage,
            gateway=opened.gateway,
            client=Client(opened.redis),
            polling_settings=polling,
            polling_config=config,
            polling_queue=queue,
            polling_concurrency=concurrency,
            polling_stats=stats,
            polling_base=base,
            polling_lifecycle=PollingLifecycleService(queue, config, settings=polling),
        )

    def _open_queue(self, opened: _Opened, polling: PollingSettings) -> PollingQueueManager:
        queue = PollingQueueManager(
            opened.redis,
            shards_per_account=self._settings.polling.shards_per_account,
            turn_timeout=polling.turn_timeout,
        )
        self._close_later("轮询队列", queue.close)
        return queue

    def _open_concurrency(self, opened: _Opened, polling: PollingSettings) -> AccountConcurrency:
        concurrency = AccountConcurrency(
            opened.redis, slot_lease=polling.slot_lease, rate_wait=polling.rate_wait
        )
        self._close_later("账号并发控制", concurrency.close)
        return concurrency

    async def _start_loops(self, gate: StartGate, config: PollingConfigManager, stats: PollStats) -> None:
        await gate.wait_for("轮询配置", config.start)
        self._close_later("轮询配置", config.stop)
        await stats.start()
        self._close_later("轮询统计", stats.stop)

    def _polling_settings(self) -> PollingSettings:
        settings = self._settings.polling
        return PollingSettings(
            visibility=settings.visibility,
            turn_timeout=settings.turn_timeout,
            slot_lease=settings.turn_timeout + SLOT_MARGIN,
            put_back=settings.put_back,
            max_backoff=settings.max_backoff,
            high_water=settings.high_water,
            low_water=settings.high_water // 2,
            reconcile_every=settings.reconcile_every,
        )


async def _close_pool(pool: Pool) -> None:
    try:
        await pool.close()
    finally:
        pool.terminate()  # closing waits for busy connections; when its time is up they are dropped


def _revealed(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
