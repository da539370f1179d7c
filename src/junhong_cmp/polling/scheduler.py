"""The leader's duty of claiming due cards, for as long as its term lasts."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Final

import structlog

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import FAULTS, Backoff, OutageLog
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.leadership.term import Term
from junhong_cmp.polling.background import cancel_and_wait
from junhong_cmp.polling.backlog import BacklogGate
from junhong_cmp.polling.claim_hold import ClaimHold
from junhong_cmp.polling.claim_round import ClaimRound
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.dispatcher import PollDispatcher
from junhong_cmp.polling.errors import FencedError, TermOverError
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.term import PollingTerm

log = structlog.stdlib.get_logger(__name__)

_LONGEST_PAUSE: Final = timedelta(seconds=5)
_LEAVING_S: Final = 0.5
_LOST: Final = "检测到 Redis 数据丢失，开始全量初始化"
_LOST_IN_TERM: Final = "检测到 Redis 数据丢失，结束本任期，由下一任期全量初始化"


def _ignore_lost_data() -> None:
    """Do nothing: without an initializer in the process nobody can put the cards back."""


@dataclass(slots=True, kw_only=True)
class PollingScheduler:
    """A polling scheduler opens a term, then claims round after round until it is stopped.

    Redis faults are waited out. Under a lease (``leased``) it serves that one term: refused by a shard
    it disputes the term, claims nothing more, and waits to be stopped. Without a lease, found without
    the data it sealed, it opens a new term and calls ``on_lost_data``; refused by a later term it
    dies, for somebody else leads, and nobody would tell when that is over.
    Without a gateway it claims nothing at all, so that polls wait in their shards and not in the
    task queue.
    """

    name: ClassVar[str] = "polling_scheduler"

    pool: Pool
    redis: RedisClient
    queue_manager: PollingQueueManager
    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    client: Client
    stats: PollStats
    has_gateway: bool
    on_lost_data: Callable[[], None] = _ignore_lost_data
    leased: Term | None = None
    settings: PollingSettings = field(default_factory=PollingSettings)
    clock: Clock = field(default_factory=SystemClock)
    _hold: ClaimHold = field(init=False)
    _running: asyncio.Task[None] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Put the parts together; nothing is asked before the start."""
        self._hold = ClaimHold(self.pool, self.redis, self.settings, clock=self.clock)

    async def start(self) -> None:
        """Begin the term in the background."""
        self._running = asyncio.create_task(self._run(), name="polling:scheduler")

    async def stop(self) -> None:
        """Stop claiming at once; a claim whose task was not enqueued any more is due again by itself."""
        if self._running is None:
            return
        task, self._running = self._running, None
        await cancel_and_wait(task)
        if self.leased is None or self.leased.trusted:
            await self._leave()

    async def _leave(self) -> None:
        """Tell the next leader that all is in order; who cannot be told makes sure himself."""
        with contextlib.suppress(*FAULTS):
            async with asyncio.timeout(_LEAVING_S):
                await self._hold.leave()

    async def _run(self) -> None:
        if not self.has_gateway:
            log.warning("网关未配置，不认领到期的卡")
            await asyncio.Event().wait()
        term = PollingTerm(self.redis, self.queue_manager, self._hold, self.leased)
        claims = self._claim_round(term)
        outage, backoff = OutageLog("认领到期的卡"), Backoff(_LONGEST_PAUSE)
        while True:
            try:
                if not term.is_open:
                    await term.open()
                pause = await claims.run()
            except FencedError as error:
                await self._answer_fence(term, error)
                continue
            except TermOverError:
                await asyncio.Event().wait()  # whoever keeps the lease stops us
            except FAULTS as error:
                outage.failed(error)
                pause = backoff.next_delay()
            else:
                outage.worked()
                backoff.reset()
            await asyncio.sleep(pause)

    async def _answer_fence(self, term: PollingTerm, error: FencedError) -> None:
        if error.fence is None or error.fence < error.epoch:
            log.error(_LOST if self.leased is None else _LOST_IN_TERM, epoch=error.epoch)
            await self._report_loss()
            await self._dispute(error)
            await asyncio.sleep(self.settings.min_tick.total_seconds())
            term.close()
            self.on_lost_data()
            return
        log.error("操作被隔离：任期已过期，停止调度", epoch=error.epoch, fence=error.fence)
        await self._dispute(error)
        raise error

    async def _report_loss(self) -> None:
        """See to it that the next term holds its claims back, whoever has it."""
        backoff = Backoff(_LONGEST_PAUSE)
        while True:
            try:
                await self._hold.report_loss()
            except FAULTS:
                await asyncio.sleep(backoff.next_delay())
            else:
                return

    async def _dispute(self, error: FencedError) -> None:
        if self.leased is not None:
            self.leased.dispute(error.fence)
            await asyncio.Event().wait()  # the term is over: whoever keeps the lease stops us

    def _claim_round(self, term: PollingTerm) -> ClaimRound:
        return ClaimRound(
            queue_manager=self.queue_manager,
            config_manager=self.config_manager,
            concurrency=self.concurrency,
            dispatcher=PollDispatcher(self.client, self.settings),
            backlog=BacklogGate(Broker(self.redis), self.settings),
            term=term,
            stats=self.stats,
            settings=self.settings,
            clock=self.clock,
        )
