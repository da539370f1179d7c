"""Usage of cards, days, cycles and pools, compared and brought in line."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.usage import BillingTerms, CycleId, billing_cycle, previous_cycle
from junhong_cmp.cards.usage_rollup import (
    RollupWindow,
    find_differing,
    find_page_end,
    find_uncovered,
    mend_cycles,
    sum_pools,
)
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_SHOWN_CARDS: Final = 10


class UsageRollupHandler(PeriodicHandler):
    """A usage roll-up handler mends open cycles, adds pools up, and reports days that exceed their cycles.

    It goes page by page; whatever it has not reached when the server stops waits for the next run.
    """

    task_type = TaskType.USAGE_ROLLUP

    def __init__(self, pool: Pool, *, page: int = 2000, clock: Clock | None = None) -> None:
        self._pool = pool
        self._page = page
        self._clock = clock if clock is not None else SystemClock()

    async def run(self, draining: asyncio.Event) -> None:
        """Compare all cards once, then add the pools up."""
        current, windows = await self._find_windows()
        mended, uncovered = await self._compare(windows, draining)
        for account_id, cycle in current.items():
            await sum_pools(self._pool, account_id, cycle)
        if uncovered:
            log.error("每日用量之和超过周期用量", cards=len(uncovered), card_ids=uncovered[:_SHOWN_CARDS])
        log.info("用量汇总完成", mended=mended, uncovered=len(uncovered), pools_of=len(current))

    async def _find_windows(self) -> tuple[dict[int, CycleId], list[RollupWindow]]:
        """Return each account's current cycle, and the window to compare: from the cycle before on."""
        async with self._pool.acquire() as conn:
            accounts = await list_accounts(conn)
        current: dict[int, CycleId] = {}
        windows: list[RollupWindow] = []
        for account in accounts:
            zone = find_zone(account.tz)
            if zone is not None:
                terms = BillingTerms(account.billing_day, zone)
                cycle = billing_cycle(self._clock.now(), account.billing_day, zone)
                current[account.id] = cycle
                windows.append(RollupWindow(account.id, previous_cycle(cycle, terms)))
        return current, windows

    async def _compare(
        self, windows: Sequence[RollupWindow], draining: asyncio.Event
    ) -> tuple[int, list[int]]:
        mended, uncovered, after_id = 0, list[int](), 0
        while not draining.is_set():
            last_id = await find_page_end(self._pool, after_id, self._page)
            if last_id is None:
                break
            differing = await find_differing(self._pool, after_id, last_id)
            if differing:
                mended += await self._mend(differing)
            uncovered += await find_uncovered(self._pool, after_id, last_id, windows)
            after_id = last_id
        return mended, uncovered

    async def _mend(self, card_ids: Sequence[int]) -> int:
        return await in_transaction(self._pool, lambda conn: mend_cycles(conn, card_ids))
