"""One poll of one card, the same for every task type."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import structlog

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.outages import FAULTS, OutageLog
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.observations import RecordOutcome
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import is_outage
from junhong_cmp.gateway.client import CardRef, GatewayClient
from junhong_cmp.gateway.errors import AccountPausing, GatewayError, GatewayNotConfigured
from junhong_cmp.polling.aftermath import PollAftermath
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal, Slot
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.due import backoff_delay, next_due
from junhong_cmp.polling.errors import InvalidPayloadError, NewerPayloadError
from junhong_cmp.polling.failures import CardFailures
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.preparation import Prepared, TurnPreparation
from junhong_cmp.polling.query import PollQuery
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.stats import PollOutcome, PollStats
from junhong_cmp.polling.tasks import PollPayload, TaskType
from junhong_cmp.polling.turn import REMOVED, Ending, Turn, put_back

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class PollingBase:
    """A polling base takes a claimed card through its turn: start, load, admit, ask, commit, write back.

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
    _pauses: AccountPauses = field(init=False)
    _failures: CardFailures = field(init=False)
    _aftermath: PollAftermath = field(init=False)
    _preparation: TurnPreparation = field(init=False)
    _redis: OutageLog = field(init=False, default_factory=lambda: OutageLog("polling_turn"))
    _rare: RareLog = field(init=False, default_factory=RareLog)

    def __post_init__(self) -> None:
        """Set the batches up; nothing is sent before the first turn."""
        self._pauses = AccountPauses(
            self.pool,
            reread=self.config_manager.try_refresh,
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
            pauses=self._pauses,
            settings=self.settings,
            rare=self._rare,
        )

    async def close(self) -> None:
        """Finish the batches under way; call it after the last turn."""
        await self._preparation.close()
        await self._failures.close()
        await self._aftermath.close()

    async def turn(self, task: ProcessingTask, query: PollQuery[Any]) -> None:
        """Poll the card of a task once, if its claim still holds.

        Raises:
            SkipRetry: the payload cannot be read.
            PutBack: the payload is of a newer version, and its claim may still hold.

        """
        try:
            payload = PollPayload.decode(task.payload)
        except NewerPayloadError as error:
            self._leave_to_newer_worker(error)
            return
        except InvalidPayloadError as error:
            raise SkipRetry(str(error)) from error
        try:
            turn = await self._start(payload, query.task_type)
            if turn is None:
                self.stats.count(query.task_type, payload.account_id, PollOutcome.SUPERSEDED)
                return
            await self._finish(turn, await self._poll(turn, query))
        except FAULTS as error:  # Redis; the claim runs out and the card is due again
            self._redis.failed(error)
        else:
            self._redis.worked()

    def _leave_to_newer_worker(self, error: NewerPayloadError) -> None:
        """Offer the task again until its claim runs out; from then on the card is due without it."""
        self._rare.warning("轮询任务的载荷版本过新，留给新版本的 Worker", reason=str(error))
        if error.claim > self.clock.now().timestamp() * 1000:
            raise PutBack(self.settings.put_back, str(error))

    async def _start(self, payload: PollPayload, task_type: TaskType) -> Turn | None:
        account_id, card_id = payload.account_id, payload.card_id
        started = await self.queue_manager.start(task_type, account_id, card_id, payload.claim)
        if started is None:
            return None
        shard = self.queue_manager.shard(task_type, account_id, card_id)
        return Turn(task_type, payload, shard, started, self.clock.monotonic())

    async def _finish(self, turn: Turn, ending: Ending) -> None:
        card_id, claim, account_id = turn.payload.card_id, turn.started.claim, turn.payload.account_id
        if ending.next_due is None:
            kept = await self.queue_manager.remove_claimed(turn.shard, card_id, claim)
        else:
            kept = await self.queue_manager.write_back(turn.shard, card_id, claim, ending.next_due)
        if not kept:
            self.stats.count(turn.task_type, account_id, PollOutcome.SUPERSEDED)
        if ending.outcome is not None:
            lag_ms = None if ending.outcome is PollOutcome.THROTTLED else turn.lag_ms
            self.stats.count(turn.task_type, account_id, ending.outcome, lag_ms)

    async def _poll(self, turn: Turn, query: PollQuery[Any]) -> Ending:
        prepared = await self._preparation.prepare(turn, turn.started.now_ms)
        if isinstance(prepared, Ending):
            return prepared
        slot = await self.concurrency.acquire(prepared.account, turn.task_type, prepared.card.id)
        if isinstance(slot, Refusal):
            return self._put_back(turn, self.settings.put_back)
        try:
            answer = await self._ask(slot, query, prepared)
            recorded = await query.commit(prepared.card, answer, self.clock.now())
        except Exception as error:  # noqa: BLE001 - told apart and recorded there; one bad card stops no other
            return await self._ending_of(turn, prepared, error)
        if recorded.outcome is RecordOutcome.GONE:
            return REMOVED
        if recorded.changed:
            return await self._next_of_changed(turn, prepared)
        return self._next(turn, prepared, PollOutcome.DONE)

    async def _next_of_changed(self, turn: Turn, prepared: Prepared) -> Ending:
        """End the turn of a card the poll has changed: perhaps another rule applies now, or none."""
        card = await self._aftermath.follow(prepared.card, turn.task_type)
        rule = None if card is None else self.config_manager.rule_for(card, turn.task_type)
        if card is None or rule is None or card.account_id != turn.payload.account_id:
            return Ending(PollOutcome.DONE, None)
        return self._next(turn, replace(prepared, card=card, rule=rule), PollOutcome.DONE)

    async def _ending_of(self, turn: Turn, prepared: Prepared, error: Exception) -> Ending:
        if isinstance(error, AccountPausing):
            return self._put_back(turn, await self._pauses.pause(prepared.account, error))
        if isinstance(error, GatewayNotConfigured):
            self._rare.warning("网关未配置，轮询推迟", account=prepared.account.code, error=str(error))
            return self._put_back(turn, self.settings.put_back)
        if is_outage(error):
            self._rare.warning("轮询结果未能写入数据库", error=type(error).__name__)
            return self._put_back(turn, self.settings.put_back)
        if not isinstance(error, GatewayError):
            log.error("轮询出错", task_type=str(turn.task_type), card_id=prepared.card.id, exc_info=error)
        failures = await self._failures.record(turn.task_type, prepared.card, error, self.clock.now())
        delay = backoff_delay(prepared.rule, failures, self.settings.max_backoff)
        return self._next(turn, prepared, PollOutcome.FAILED, delay)

    async def _ask(self, slot: Slot, query: PollQuery[Any], prepared: Prepared) -> Any:
        card = prepared.card
        try:
            if slot.wait_s > 0:
                await asyncio.sleep(slot.wait_s)
            return await query.ask(
                prepared.gateway,
                gateway_account(prepared.account),
                CardRef(card.id, card.iccid, card.msisdn),
            )
        finally:
            await self._release(slot)

    async def _release(self, slot: Slot) -> None:
        try:
            await self.concurrency.release(slot)
        except FAULTS as error:  # its lease runs out by itself; the answer in hand is worth keeping
            self._redis.failed(error)

    def _next(
        self, turn: Turn, prepared: Prepared, outcome: PollOutcome, delay: timedelta = timedelta()
    ) -> Ending:
        due = next_due(
            prepared.card.id,
            turn.task_type,
            prepared.rule,
            turn.now_ms(self.clock.monotonic()),
            min_gap=prepared.account.per_card_min_gap,
            delay=delay,
        )
        return Ending(outcome, due)

    def _put_back(self, turn: Turn, delay: timedelta) -> Ending:
        return put_back(turn.now_ms(self.clock.monotonic()), delay)
