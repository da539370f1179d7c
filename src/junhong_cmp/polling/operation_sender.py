"""Sending a stop or resume to the carrier, within its limits and never twice blindly."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.gateway.errors import (
    AccountPausing,
    CardResting,
    GatewayError,
    GatewayNotConfigured,
    Transient,
)
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.operation_rules import OperationKind, OperationStatus, judge_reply
from junhong_cmp.polling.operation_sending import begin_sending, find_last_sent, withdraw_operation
from junhong_cmp.polling.operation_settler import OperationSettler
from junhong_cmp.polling.operation_store import OpenOperation
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.stats import PollStats
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_BUSY_DELAY: Final = timedelta(seconds=5)
_REFUSED_FOR: Final = {
    Refusal.DAY_BUDGET: timedelta(minutes=10),
    Refusal.MONTH_BUDGET: timedelta(minutes=30),
}
_UNREACHED_DELAY: Final = timedelta(minutes=1)


@dataclass(slots=True, kw_only=True)
class OperationSender:
    """An operation sender notes each call before making it, so that a lost reply is known to be one.

    A call whose reply was lost is not repeated here: the follow-up asks what became of it.
    """

    pool: Pool
    concurrency: AccountConcurrency
    pauses: AccountPauses
    settler: OperationSettler
    stats: PollStats
    clock: Clock = field(default_factory=SystemClock)

    async def send(self, gateway: GatewayClient, account: CarrierAccount, operation: OpenOperation) -> None:
        """Send the operation unless it has been sent, and write down what came of it.

        Raises:
            PutBack: the card's or the account's limits do not let it through yet; nothing was sent.

        """
        await self._keep_gap(account, operation)
        slot = await self.concurrency.acquire(account, TaskType.POLLING_PROTECT, operation.card.card_id)
        if isinstance(slot, Refusal):
            raise PutBack(
                _REFUSED_FOR.get(slot, _BUSY_DELAY) * random.uniform(1, 4), f"停复机推迟：{slot.name}"
            )
        try:
            await asyncio.sleep(slot.wait_s)
            sends = await begin_sending(self.pool, operation, self.clock.now())
            if sends is None:
                return
            await self._call(gateway, account, operation, sends)
        finally:
            await self.concurrency.release(slot)

    async def _keep_gap(self, account: CarrierAccount, operation: OpenOperation) -> None:
        last = await find_last_sent(self.pool, operation.card.card_id, apart_from=operation.id)
        if last is None:
            return
        wait = account.operation_min_gap - (self.clock.now() - last)
        if wait > timedelta():
            raise PutBack(wait, "距该卡上次停复机的间隔不足")

    async def _call(
        self, gateway: GatewayClient, account: CarrierAccount, operation: OpenOperation, sends: int
    ) -> None:
        call = gateway.stop if operation.kind is OperationKind.STOP else gateway.resume
        reply: OperationState | GatewayError
        try:
            answer = await call(gateway_account(account), operation.card, operation.request_id)
        except GatewayError as error:
            delay = await self._delay(account, error)
            if delay is not None:  # it never reached the carrier: as if it had never been sent
                await withdraw_operation(self.pool, operation, str(error), self.clock.now())
                raise PutBack(delay, f"停复机推迟：{error.reason}") from error
            reply = error
        else:
            reply = answer.state
        verdict = judge_reply(reply, sends)
        if verdict.status is OperationStatus.FAILED and isinstance(reply, GatewayError):
            self._count(account, operation, reply)
        await self.settler.settle(operation, verdict)

    async def _delay(self, account: CarrierAccount, error: GatewayError) -> timedelta | None:
        """Return how long to wait after a call that was not made; None when it may have been."""
        match error:
            case AccountPausing():
                return await self.pauses.pause(account, error)
            case CardResting():
                return error.wait
            case GatewayNotConfigured() | Transient(maybe_executed=False):
                return _UNREACHED_DELAY
            case _:
                return None

    def _count(self, account: CarrierAccount, operation: OpenOperation, error: GatewayError) -> None:
        """Group it with the errors operators look at; what is wrong with a request stays wrong."""
        self.stats.count_error(
            TaskType.POLLING_PROTECT, account.id, error.reason, str(error), operation.card.card_id
        )
