"""The dependencies that every role shares, opened once and handed to whoever needs them."""

from dataclasses import dataclass

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.clock import Clock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.storage.store import Storage
from junhong_cmp.worker.report import missing_services


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What `BootstrapWorker` opened; every role has all of it, the optional ones may be None."""

    clock: Clock
    redis: RedisClient
    blocking_redis: RedisClient
    pool: Pool
    storage: Storage | None
    gateway: GatewayClient | None
    client: Client
    polling_settings: PollingSettings
    polling_config: PollingConfigManager
    polling_queue: PollingQueueManager
    polling_concurrency: AccountConcurrency
    polling_stats: PollStats
    polling_base: PollingBase
    polling_lifecycle: PollingLifecycleService

    @property
    def missing(self) -> tuple[str, ...]:
        """What this process cannot do for lack of optional services, a sentence each."""
        return missing_services(storage=self.storage is not None, gateway=self.gateway is not None)
