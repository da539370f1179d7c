"""The turn of a poll task, the same for every task type."""

from dataclasses import dataclass, field
from typing import Any

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.outages import FAULTS, OutageLog
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.polling.aftermath import PollAftermath
from junhong_cmp.polling.batch_payload import BatchPayload, decode_poll
from junhong_cmp.polling.batch_turn import BatchTurn
from junhong_cmp.polling.concurrency import AccountConcurrency
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.endings import TurnEndings
from junhong_cmp.polling.errors import InvalidPayloadError, NewerPayloadError
from junhong_cmp.polling.failures import CardFailures
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.preparation import TurnPreparation
from junhong_cmp.polling.query import PollQuery
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.single_turn import SingleTurn
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.write_guard import WriteGuard


@dataclass(slots=True)
class PollingBase:
    """A polling base takes claimed cards through their turn: start, load, admit, ask, commit, write back.

    Whatever goes wrong, the sorted set is the retry: the task ends, and the card is due again by
    the time written back or, if not even that worked, when its claim runs out. Only after commit
    and write-back does a turn return, so that the ack which follows tells the truth.
    """

    pool: Pool
    queue_manager: PollingQueueManager
    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    gateway: GatewayClient | None
    stats: PollStats
    settings: PollingSettings = field(default_factory=PollingSettings)
    clock: Clock = field(default_factory=SystemClock)
    _failures: CardFailures = field(init=False)
    _aftermath: PollAftermath = field(init=False)
    _preparation: TurnPreparation = field(init=False)
    _single: SingleTurn = field(init=False)
    _batch: BatchTurn = field(init=False)
    _redis: OutageLog = field(init=False, default_factory=lambda: OutageLog("轮询"))
    _rare: RareLog = field(init=False, default_factory=RareLog)

    def __post_init__(self) -> None:
        """Put the parts together; nothing is sent before the first turn."""
        guard = WriteGuard(self.pool, clock=self.clock.monotonic)
        pauses = AccountPauses(
            self.pool,
            reread=self.config_manager.try_refresh,
            accounts=lambda: self.config_manager.snapshot.accounts,
            loads=self.concurrency.loads,
            max_pause=self.settings.max_pause,
            clock=self.clock,
        )
        self._failures = CardFailures(self.pool, self.stats)
        lifecycle = PollingLifecycleService(self.queue_manager, self.config_manager, settings=self.settings)
        self._aftermath = PollAftermath(self.pool, lifecycle)
        self._preparation = TurnPreparation(
            queue_manager=self.queue_manager,
            config_manager=self.config_manager,
            pool=self.pool,
            gateway=self.gateway,
            pauses=pauses,
            guard=guard,
            settings=self.settings,
            rare=self._rare,
        )
        self._compose(pauses, guard)

    def _compose(self, pauses: AccountPauses, guard: WriteGuard) -> None:
        endings = TurnEndings(
            config_manager=self.config_manager,
            concurrency=self.concurrency,
            pauses=pauses,
            failures=self._failures,
            aftermath=self._aftermath,
            guard=guard,
            stats=self.stats,
            settings=self.settings,
            clock=self.clock,
            rare=self._rare,
        )
        self._single = SingleTurn(
            queue_manager=self.queue_manager,
            preparation=self._preparation,
            concurrency=self.concurrency,
            endings=endings,
            clock=self.clock,
        )
        self._batch = BatchTurn(
            queue_manager=self.queue_manager,
            preparation=self._preparation,
            concurrency=self.concurrency,
            endings=endings,
            single=self._single,
            clock=self.clock,
        )

    async def close(self) -> None:
        """Finish the batches under way; call it after the last turn."""
        await self._preparation.close()
        await self._failures.close()
        await self._aftermath.close()

    async def turn(self, task: ProcessingTask, query: PollQuery[Any]) -> None:
        """Poll the card or cards of a task once, if their claims still hold.

        Raises:
            SkipRetry: the payload cannot be read.
            PutBack: the payload is of a newer version, and its claim may still hold.

        """
        try:
            payload = decode_poll(task.payload)
        except NewerPayloadError as error:
            self._leave_to_newer_worker(error)
            return
        except InvalidPayloadError as error:
            raise SkipRetry(str(error)) from error
        try:
            if isinstance(payload, BatchPayload):
                await self._batch.run(payload, query)
            else:
                await self._single.run(payload, query)
        except FAULTS as error:  # Redis; the claim runs out and the card is due again
            self._redis.failed(error)
        else:
            self._redis.worked()

    def _leave_to_newer_worker(self, error: NewerPayloadError) -> None:
        """Offer the task again until its claim runs out; from then on the card is due without it."""
        self._rare.warning("轮询任务的载荷版本过新，留给新版本的 Worker", reason=str(error))
        if error.claim > self.clock.now().timestamp() * 1000:
            raise PutBack(self.settings.put_back, str(error))
