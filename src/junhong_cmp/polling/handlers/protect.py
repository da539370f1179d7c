"""Stopping and resuming a card, by the rules or at somebody's order (停复机)."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.protection import NOTHING, Decision, ProtectionAction
from junhong_cmp.cards.store import load_cards
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.errors import InvalidPayloadError
from junhong_cmp.polling.faults import AWAY_DELAY, PASSING_FAULTS, is_dependency_outage
from junhong_cmp.polling.operation_rules import GIVE_UP_AFTER, OperationKind, OperationStatus, Verdict
from junhong_cmp.polling.operation_sender import OperationSender
from junhong_cmp.polling.operation_store import NewOperation, OpenOperation, find_operations, place_operation
from junhong_cmp.polling.poll_now import PollNow
from junhong_cmp.polling.protection import ProtectionJudge, billing_terms
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_OTHER_DELAY: Final = timedelta(minutes=1)
_RULES: Final = "rules"
_RESUMES: Final[Mapping[ProtectionAction, str]] = {
    ProtectionAction.RESUME: "cycle_rollover",
    ProtectionAction.RESUME_RAISED: "limit_raised",
}
"""Why the rules resume a card, as its operation says."""


@dataclass(slots=True, kw_only=True)
class ProtectHandler:
    """A protect handler places an operation where one is due, and sends the one that is placed.

    The task carries no decision: what is due is decided anew from PostgreSQL each time, so a task that comes
    twice, or late, does what is right then. The operation in PostgreSQL is what survives; a lost task is made
    up for by the follow-up (placed operations) and by the sweeps (cards).
    """

    task_type = TaskType.POLLING_PROTECT

    pool: Pool
    gateway: GatewayClient | None
    config_manager: PollingConfigManager
    queue_manager: PollingQueueManager
    sender: OperationSender
    clock: Clock = field(default_factory=SystemClock)

    async def process_task(self, task: ProcessingTask) -> None:
        """Decide about the card, or carry out the order.

        Raises:
            SkipRetry: the payload cannot be read.
            PutBack: a limit, a pause or an outage is in the way.

        """
        try:
            payload = CardPayload.decode(task.payload)
        except InvalidPayloadError as error:
            raise SkipRetry(str(error)) from error
        try:
            await self._process(payload)
        except PASSING_FAULTS as error:
            if not is_dependency_outage(error):
                raise
            raise PutBack(AWAY_DELAY, f"依赖暂不可用：{type(error).__name__}") from error

    async def _process(self, payload: CardPayload) -> None:
        card = (await load_cards(self.pool, [payload.card_id])).get(payload.card_id)
        account = None if card is None else self.config_manager.snapshot.accounts.get(card.account_id)
        if card is None or account is None:
            return
        if not account.polling_enabled or billing_terms(account) is None:
            await self._refuse(card, account, payload.order)
            return
        self._check_account(account)
        gateway = self.gateway
        if gateway is None:
            raise PutBack(AWAY_DELAY, "网关未配置，停复机推迟")
        operation = await self._operation_of(card, account, payload.order)
        if operation is None or operation.sent_at is not None:
            return
        if operation.age(self.clock.now()) >= GIVE_UP_AFTER:
            verdict = Verdict(OperationStatus.FAILED, "超过时限仍未能送达运营商")
            await self.sender.settler.settle(operation, verdict)
            return
        await self.sender.send(gateway, account, operation)

    async def _refuse(self, card: Card, account: CarrierAccount, order: Order | None) -> None:
        """Leave a card alone whose account is switched off or unusable; whoever gave an order can see why."""
        if order is None:
            return
        found = await find_operations(self.pool, card.id, order.request_id)
        if not found:
            await self._place(card, account, order)
            found = await find_operations(self.pool, card.id, order.request_id)
        for operation in found:
            if operation.request_id == order.request_id and operation.sent_at is None:
                verdict = Verdict(OperationStatus.FAILED, "账号已停用或配置有误，没有发送")
                await self.sender.settler.settle(operation, verdict)

    def _check_account(self, account: CarrierAccount) -> None:
        resting = self.sender.pauses.remaining(account)
        if resting is not None:
            raise PutBack(min(resting, timedelta(hours=1)), "账号暂停，停复机推迟")

    async def _operation_of(
        self, card: Card, account: CarrierAccount, order: Order | None
    ) -> OpenOperation | None:
        """Return the card's operation under way, placed just now if one is due; None when there is none."""
        request_id = order.request_id if order is not None else uuid.uuid4().hex
        found = await find_operations(self.pool, card.id, request_id)
        if order is not None:
            return await self._ordered(card, account, order, found)
        if found and not (found[0].requested_by == _RULES and found[0].sent_at is None):
            return found[0]
        return await self._by_the_rules(card, account, found[0] if found else None, request_id)

    async def _by_the_rules(
        self, card: Card, account: CarrierAccount, placed: OpenOperation | None, request_id: str
    ) -> OpenOperation | None:
        """Return the operation the rules want now; one they wanted before, and that was not sent, is dropped.

        It may have waited for hours: the cycle is over since, the limit was raised, the card was moved.
        """
        decision = await self._decide(card, account)
        wanted, reason = _operation_for(decision, request_id), _reason_of(decision)
        if placed is not None:
            if wanted is not None and (placed.kind, placed.reason) == (wanted.kind, reason):
                return placed
            verdict = Verdict(OperationStatus.FAILED, "尚未发送，规则已不再要求")
            await self.sender.settler.settle(placed, verdict)
        if wanted is None:
            return None
        await self._place(card, account, wanted, reason)
        found = await find_operations(self.pool, card.id)
        return found[0] if found else None

    async def _ordered(
        self, card: Card, account: CarrierAccount, order: Order, found: list[OpenOperation]
    ) -> OpenOperation | None:
        """Return the order's operation if it is still to be sent; another one under way comes first."""
        mine = next((operation for operation in found if operation.request_id == order.request_id), None)
        if mine is not None:
            return mine if mine.status is OperationStatus.PENDING else None
        if not found:
            await self._place(card, account, order)
            found = await find_operations(self.pool, card.id, order.request_id)
        if found and found[0].request_id == order.request_id:
            return found[0]
        raise PutBack(_OTHER_DELAY, "该卡有停复机操作尚未结束")

    async def _decide(self, card: Card, account: CarrierAccount) -> Decision:
        judge = ProtectionJudge(self.pool, self.clock)
        decision = (await judge.decide([card], {account.id: account})).get(card.id, NOTHING)
        if decision.action is ProtectionAction.POLL_FIRST:
            poll = PollNow(self.queue_manager, self.config_manager.snapshot, [TaskType.POLLING_CARDDATA])
            await poll.hasten([card])
            return NOTHING
        return decision

    async def _place(
        self, card: Card, account: CarrierAccount, order: Order, reason: str | None = None
    ) -> None:
        """Write down what is about to be sent; ``reason`` is the rules', of an order it is its own."""
        terms, now = billing_terms(account), self.clock.now()
        new = NewOperation(
            card_id=card.id,
            kind=order.kind,
            reason=order.reason.value if reason is None else reason,
            request_id=order.request_id,
            cycle=None if terms is None else billing_cycle(now, terms.billing_day, terms.tz),
            requested_by=order.requested_by,
        )
        await place_operation(self.pool, new, now)


def _operation_for(decision: Decision, request_id: str) -> Order | None:
    if decision.action is ProtectionAction.STOP:
        return Order(OperationKind.STOP, request_id, decision.reason, _RULES)
    if decision.action in _RESUMES:
        return Order(OperationKind.RESUME, request_id, decision.reason, _RULES)
    return None


def _reason_of(decision: Decision) -> str:
    return _RESUMES.get(decision.action, decision.reason.value)
