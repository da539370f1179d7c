"""Stops and resumes that were sent, or perhaps were: the carrier is asked what became of them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.gateway.errors import AccountPausing, GatewayError, GatewayNotConfigured
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.operation_rules import ASK_AFTER, OperationStatus, Verdict, judge_operation
from junhong_cmp.polling.operation_store import OpenOperation, list_open_operations, settle_operation
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_NO_GATEWAY_DELAY: Final = timedelta(seconds=30)
_MOST_AT_ONCE: Final = 500


@dataclass(slots=True, kw_only=True)
class OperationFollowupHandler(PeriodicHandler):
    """An operation follow-up handler asks within the accounts' limits, each account one call at a time.

    An account that rests, or that refuses a call as a whole, is left for the next run. Without a gateway
    the task goes to a worker that has one.
    """

    task_type = TaskType.OPERATION_FOLLOWUP

    pool: Pool
    gateway: GatewayClient | None
    config_manager: PollingConfigManager
    concurrency: AccountConcurrency
    clock: Clock = field(default_factory=SystemClock)
    _pauses: AccountPauses = field(init=False)

    def __post_init__(self) -> None:
        """Share the pauses of everybody."""
        self._pauses = AccountPauses(self.pool, reread=self.config_manager.try_refresh, clock=self.clock)

    async def run(self, draining: asyncio.Event) -> None:
        """Ask about every operation that should have come to an end."""
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
            if not account.polling_enabled or self._pauses.remaining(account) is not None:
                return
            verdict = await self._ask(gateway, account, operation)
            if verdict is None:
                return
            if await settle_operation(self.pool, operation, verdict, self.clock.now()):
                outcomes[verdict.status] += 1

    async def _ask(
        self, gateway: GatewayClient, account: CarrierAccount, operation: OpenOperation
    ) -> Verdict | None:
        """Return what the answer makes of the operation; None when the account is to be left alone."""
        slot = await self.concurrency.acquire(account, self.task_type, operation.card.card_id)
        if isinstance(slot, Refusal):
            return None
        age = operation.age(self.clock.now())
        try:
            await asyncio.sleep(slot.wait_s)
            answer = await gateway.query_operation(
                gateway_account(account), operation.card, operation.request_id
            )
        except AccountPausing as error:
            await self._pauses.pause(account, error)
            return None
        except GatewayNotConfigured as error:
            log.warning("账号的网关未配置，停复机操作未能跟进", account=account.code, error=str(error))
            return None
        except GatewayError as error:
            return judge_operation(operation.status, error, age)
        finally:
            await self.concurrency.release(slot)
        return judge_operation(operation.status, answer.state, age)
