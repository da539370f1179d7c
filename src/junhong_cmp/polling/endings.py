"""How a poll ends: what its outcome means for the card, its account, and when it is due again."""

from dataclasses import dataclass
from datetime import timedelta

import structlog

from junhong_cmp.cards.observations import Recorded, RecordOutcome
from junhong_cmp.clock import Clock
from junhong_cmp.db.retrying import is_outage
from junhong_cmp.gateway.errors import (
    AccountPausing,
    GatewayError,
    GatewayNotConfigured,
    NotOffered,
    QuotaExhausted,
    Transient,
)
from junhong_cmp.polling.aftermath import PollAftermath
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.due import backoff_delay, next_due
from junhong_cmp.polling.failures import CardFailures
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.preparation import Prepared
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.stats import PollOutcome, PollStats
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.polling.turn import REMOVED, Ending, Turn, put_back
from junhong_cmp.polling.write_guard import WriteGuard

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class TurnEndings:
    """Turn endings decide when a card is due again, and see to it that whoever is to know learns why."""

    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    pauses: AccountPauses
    failures: CardFailures
    aftermath: PollAftermath
    guard: WriteGuard
    stats: PollStats
    settings: PollingSettings
    clock: Clock
    rare: RareLog

    def settled(self, turn: Turn, prepared: Prepared, recorded: Recorded) -> Ending | None:
        """Return how such a turn ends; None when the poll changed its card, which has consequences."""
        self.pauses.answered(prepared.account.id)
        if recorded.outcome is RecordOutcome.GONE:
            return REMOVED
        return None if recorded.changed else self._next(turn, prepared, PollOutcome.DONE)

    async def recorded(self, turn: Turn, prepared: Prepared, recorded: Recorded) -> Ending:
        """End a turn whose answer is committed."""
        settled = self.settled(turn, prepared, recorded)
        if settled is not None:
            return settled
        card = await self.aftermath.follow(prepared.card, turn.task_type)
        rule = None if card is None else self.config_manager.rule_for(card, turn.task_type)
        if card is None or rule is None or card.account_id != turn.payload.account_id:
            return Ending(PollOutcome.DONE, None)  # another rule may apply to what has changed, or none
        return self._next(turn, prepared._replace(card=card, rule=rule), PollOutcome.DONE)

    async def refused(self, turn: Turn, prepared: Prepared, refusal: Refusal) -> Ending:
        """End a turn that was not admitted: it comes back a little later, or with its budget."""
        rest = self.concurrency.budget_rest(prepared.account, refusal)
        if rest is None:
            return self._put_back(turn, self.settings.put_back)
        resting = await self.pauses.pause(
            prepared.account, QuotaExhausted("账号调用额度用尽", rest), longest=rest
        )
        return self._put_back(turn, min(resting, self.settings.max_pause))

    async def failed(self, turn: Turn, prepared: Prepared, error: Exception) -> Ending:
        """End a turn that met an error on the way from the question to the commit."""
        if isinstance(error, AccountPausing):
            return self._put_back(turn, await self.pauses.pause(prepared.account, error))
        if isinstance(error, GatewayNotConfigured):
            self.rare.warning("网关未配置，轮询推迟", account=prepared.account.code, error=str(error))
            return self._put_back(turn, self.settings.put_back)
        if isinstance(error, NotOffered):
            self.rare.warning(
                "运营商接口不提供此查询，请停用其轮询",
                account=prepared.account.code,
                task_type=str(turn.task_type),
            )
            return self._next(turn, prepared, PollOutcome.THROTTLED)
        if is_outage(error):
            self.guard.note(error)
            self.rare.warning("轮询结果未能写入数据库", error=type(error).__name__)
            return self._put_back(turn, self.settings.put_back)
        if not isinstance(error, GatewayError):
            log.error("轮询出错", task_type=str(turn.task_type), card_id=prepared.card.id, exc_info=error)
        elif not isinstance(error, Transient):  # the carrier has judged this card, or its answer
            self.pauses.answered(prepared.account.id)
        failures = await self.failures.record(turn.task_type, prepared.card, error, self.clock.now())
        delay = backoff_delay(prepared.rule, failures, self.settings.max_backoff)
        return self._next(turn, prepared, PollOutcome.FAILED, delay)

    def count(self, turn: Turn, ending: Ending, *, kept: bool) -> None:
        """Count a turn; ``kept`` tells whether its claim still held at the write-back."""
        if not kept:
            self.count_superseded(turn.task_type, turn.payload.account_id)
        if ending.outcome is not None:
            lag_ms = None if ending.outcome is PollOutcome.THROTTLED else turn.lag_ms
            self.stats.count(turn.task_type, turn.payload.account_id, ending.outcome, lag_ms)

    def count_superseded(self, task_type: TaskType, account_id: int) -> None:
        """Count a task that found somebody else holding its card."""
        self.stats.count(task_type, account_id, PollOutcome.SUPERSEDED)

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
