"""Billing cycles that are over, closed also where no reading comes any more; their stops end with them."""

import asyncio
from functools import partial

import structlog

from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.cycle_closing import BEFORE_ALL, close_cycles, first_open_cycle
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.usage import BillingTerms
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.protect_sweep import ProtectSweep, SweepCause
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)


class CycleRolloverHandler(PeriodicHandler):
    """A cycle roll-over handler closes cycles by each account's billing day and time zone, in chunks."""

    task_type = TaskType.CYCLE_ROLLOVER

    def __init__(
        self, pool: Pool, sweep: ProtectSweep, *, chunk: int = 2000, clock: Clock | None = None
    ) -> None:
        self._pool = pool
        self._sweep = sweep
        self._chunk = chunk
        self._clock = clock if clock is not None else SystemClock()

    async def run(self, draining: asyncio.Event) -> None:
        """Close what is over, account by account; then resume what was stopped for the old cycle's usage."""
        async with self._pool.acquire() as conn:
            accounts = await list_accounts(conn)
        for account in accounts:
            closed = await self._close(account, draining)
            if closed:
                log.info("计费周期已结转", account=account.code, cards=closed)
        await self._sweep.sweep(SweepCause.ROLLOVER, draining)

    async def _close(self, account: CarrierAccount, draining: asyncio.Event) -> int:
        zone = find_zone(account.tz)
        if zone is None:
            return 0
        terms = BillingTerms(account.billing_day, zone)
        before = first_open_cycle(self._clock.now(), terms, account.usage_lag)
        total, after = 0, BEFORE_ALL
        while not draining.is_set():
            close = partial(
                close_cycles, account_id=account.id, before=before, limit=self._chunk, after=after
            )
            closed = await in_transaction(self._pool, close)
            if not closed:
                break
            total, after = total + len(closed), closed[-1]
        return total
