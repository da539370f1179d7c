"""Stops and resumes that were sent, or perhaps were: the carrier is asked what became of them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import CardStatus, CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.gateway.errors import AccountPausing, GatewayError, GatewayNotConfigured, NotOffered
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.operation_rules import (
    ASK_AFTER,
    OperationStatus,
    Verdict,
    judge_by_card,
    judge_operation,
    state_by_card,
)
from junhong_cmp.polling.operation_settler import OperationSettler
from junhong_cmp.polling.operation_store import (
    OpenOperation,
    end_operations_of_deleted_cards,
    list_open_operations,
)
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_NO_GATEWAY_DELAY: Final = timedelta(seconds=30)
_MOST_AT_ONCE: Final = 500
"""Operations of an account, sent and not sent each."""


@dataclass(slots=True, kw_only=True)
class OperationFollowupHandler(PeriodicHandler):
    """An operation follow-up handler asks within the accounts' limits, each account one call at a time.

    An account that rests, or that refuses a call as a whole, is left for the next run. Without a gateway
    the task goes to a worker that has one. An operation the carrier has never seen is handed to be sent.
    """

    task_type = TaskType.OPERATION_FOLLOWUP

    pool: Pool
    gateway: GatewayClient | None
    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    pauses: AccountPauses
    settler: OperationSettler
    tasks: CardTasks
    clock: Clock = field(default_factory=SystemClock)

    async def run(self, draining: asyncio.Event) -> None:
        """Ask about every operation that should have come to an end."""
        ended = await end_operations_of_deleted_cards(self.pool, self.clock.now())
        if ended:
            log.warning("已删除的卡的停复机操作不再跟进", operations=ended)
        operations = await list_open_operations(self.pool, self.clock.now() - ASK_AFTER, _MOST_AT_ONCE)
        if not operations:
            return
        if self.gateway is None:
            raise PutBack(_NO_GATEWAY_DELAY, "网关未配置，无法查询停复机操作的结果")
        by_account: defaultdict[int, list[OpenOperation]] = defaultdict(list)
        for operation in operations:
            by_account[operation.account_id].append(operation)
        outcomes: Counter[OperationStatus] = Counter()
        ends = await asyncio.gather(
            *(
                self._follow(self.gateway, account_id, asked, outcomes, draining)
                for account_id, asked in by_account.items()
            ),
            return_exceptions=True,  # what fails for one account keeps no other from its turn
        )
        for end in ends:
            if end is not None:
                raise end
        log.info("停复机操作已跟进", **{status.value: count for status, count in outcomes.items()})

    async def _follow(
        self,
        gateway: GatewayClient,
        account_id: int,
        operations: Sequence[OpenOperation],
        outcomes: Counter[OperationStatus],
        draining: asyncio.Event,
    ) -> None:
        for operation in operations:
            snapshot = self.config_manager.snapshot
            account = snapshot.accounts.get(account_id)
            if draining.is_set() or account is None or account_id in snapshot.unusable:
                return
            if not account.polling_enabled or self.pauses.remaining(account) is not None:
                return
            if operation.sent_at is None:  # whoever was to send it never did, or is at it again
                await self.tasks.send(operation.id, operation.card.card_id, operation.sends)
                continue
            verdict = await self._ask(gateway, account, operation)
            if verdict is None:
                return
            if await self.settler.settle(operation, verdict):
                outcomes[verdict.status] += 1
            if verdict.send_again:
                await self.tasks.send(operation.id, operation.card.card_id, operation.sends)

    async def _ask(
        self, gateway: GatewayClient, account: CarrierAccount, operation: OpenOperation
    ) -> Verdict | None:
        """Return what the answer makes of the operation; None when the account is to be left alone."""
        slot = await self.concurrency.acquire(account, self.task_type, operation.card.card_id)
        if isinstance(slot, Refusal):
            return None
        try:
            await asyncio.sleep(slot.wait_s)
            return await self._look(gateway, account, operation)
        except AccountPausing as error:
            await self.pauses.pause(account, error)
            return None
        except GatewayNotConfigured as error:
            log.warning("账号的网关未配置，停复机操作未能跟进", account=account.code, error=str(error))
            return None
        except GatewayError as error:
            age = operation.age(self.clock.now())
            return judge_operation(operation.status, error, age, operation.sends)
        finally:
            await self.concurrency.release(slot)

    async def _look(
        self, gateway: GatewayClient, account: CarrierAccount, operation: OpenOperation
    ) -> Verdict:
        """Ask about the operation or, where a carrier cannot be asked that, look at its card."""
        asked, card, now = gateway_account(account), operation.card, self.clock.now()
        try:
            answer = await gateway.query_operation(asked, card, operation.request_id)
        except NotOffered:
            status = CardStatus((await gateway.query_status(asked, card)).status)
            found = state_by_card(operation.kind, status)
            waited = now - (operation.sent_at or now)
            return judge_by_card(operation.status, found, waited, operation.age(now), operation.sends)
        return judge_operation(operation.status, answer.state, operation.age(now), operation.sends)
