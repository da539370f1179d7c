"""Full initialisation of the shards at the start of a term, and regular comparison afterwards."""

import asyncio
import contextlib
import time
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.outages import Backoff
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.background import cancel_and_wait
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.faults import PASSING_FAULTS
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.reconciler import PollingReconciler
from junhong_cmp.polling.seeding import SeedWalk, ShardSeeder
from junhong_cmp.polling.settings import PollingSettings

log = structlog.stdlib.get_logger(__name__)

_LONGEST_PAUSE: Final = timedelta(seconds=5)
_MARKER_CHECK_S: Final = 5.0


class PollingInitializer:
    """An initializer streams every enabled card into its shards, once a start, and keeps them in line.

    It never holds more than a few pages of cards. Interrupted by a fault it goes on with the page at
    which it stopped; run again it adds nothing twice. Claims and polls go on meanwhile. Afterwards
    it compares PostgreSQL with the shards at times, after a change of rules, and initialises anew
    when Redis has lost its data.
    """

    name = "polling_initializer"

    def __init__(
        self,
        pool: Pool,
        queue_manager: PollingQueueManager,
        config_manager: PollingConfigManager,
        *,
        settings: PollingSettings | None = None,
    ) -> None:
        self._queue = queue_manager
        self._config = config_manager
        self._settings = settings if settings is not None else PollingSettings()
        self._seeder = ShardSeeder(pool, queue_manager, config_manager, self._settings)
        self._reconciler = PollingReconciler(pool, queue_manager, config_manager, self._settings)
        self._running: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._lost_data = False
        self._rules = config_manager.snapshot.rules
        self._rules_changed = False
        self._initialised = asyncio.Event()
        config_manager.subscribe(self._follow_rules)

    @property
    def initialised(self) -> bool:
        """Whether the full initialisation of this start is complete."""
        return self._initialised.is_set()

    async def start(self) -> None:
        """Begin to initialise in the background."""
        self._initialised.clear()
        self._running = asyncio.create_task(self._run(), name="polling:initializer")

    async def stop(self) -> None:
        """Stop at once; a later start takes up what is missing."""
        if self._running is None:
            return
        task, self._running = self._running, None
        await cancel_and_wait(task)

    def report_lost_data(self) -> None:
        """Initialise anew as soon as possible: Redis was found without what it must hold."""
        self._lost_data = True
        self._wanted.set()

    async def initialise(self) -> SeedWalk:
        """Add every missing card; faults of Redis and PostgreSQL are waited out."""
        began, walk = time.monotonic(), SeedWalk()
        backoff = Backoff(_LONGEST_PAUSE)
        log.info("全量初始化开始", version=self._config.snapshot.version)
        while True:
            before = walk.after_id
            try:
                await self._seeder.walk(walk)
                await self._queue.mark_generation(await self._queue.now_ms())
            except PASSING_FAULTS as error:
                log.warning("全量初始化中断，稍后继续", after_card=walk.after_id, error=type(error).__name__)
                if walk.after_id > before:
                    backoff.reset()
                await asyncio.sleep(backoff.next_delay())
            else:
                break
        log.info(
            "全量初始化完成",
            cards=walk.cards,
            places=walk.places,
            added=walk.added,
            duration_s=round(time.monotonic() - began, 3),
        )
        return walk

    async def _run(self) -> None:
        await self.initialise()
        self._initialised.set()
        while True:
            await self._wait_for_work()
            try:
                await self._work()
            except PASSING_FAULTS as error:
                log.warning("轮询对账中断，稍后重做", error=type(error).__name__)
                await asyncio.sleep(_LONGEST_PAUSE.total_seconds())

    async def _work(self) -> None:
        if self._lost_data:
            self._lost_data = False
            await self.initialise()
            return
        hasten, self._rules_changed = self._rules_changed, False
        try:
            await self._reconciler.reconcile(hasten=hasten)
        except BaseException:
            self._rules_changed = self._rules_changed or hasten
            raise

    async def _wait_for_work(self) -> None:
        """Return when a comparison is due, the rules changed, or data was lost."""
        until = time.monotonic() + self._settings.reconcile_every.total_seconds()
        while (left := until - time.monotonic()) > 0 and not self._wanted.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_MARKER_CHECK_S, left)):
                    await self._wanted.wait()
            with contextlib.suppress(*PASSING_FAULTS):  # a Redis that is away has lost nothing yet
                if not self._lost_data and not await self._queue.has_generation():
                    log.error("检测到 Redis 数据丢失，开始全量初始化")
                    self.report_lost_data()
        self._wanted.clear()

    def _follow_rules(self, snapshot: PollingConfigSnapshot) -> None:
        if snapshot.rules != self._rules:
            self._rules = snapshot.rules
            self._rules_changed = True
            self._wanted.set()
