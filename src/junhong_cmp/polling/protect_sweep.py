"""Cards the rules would stop or resume, found in PostgreSQL whoever missed them before."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.protection import IN_SERVICE
from junhong_cmp.cards.usage import billing_cycle
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.protection import billing_terms
from junhong_cmp.polling.sweep_queries import CANDIDATES, EXTENT, SweepCause

__all__ = ["ProtectSweep", "SweepCause", "count_candidates"]

log = structlog.stdlib.get_logger(__name__)

_PAGE: Final = 500
_MOST_PER_RUN: Final = 10_000
_BUSY_S: Final = 150
"""For how long a run may keep an account busy: half the time to the next one, the rest is for its polls."""

_IN_SERVICE: Final = [str(status) for status in IN_SERVICE]
_PERIOD_S: Final = 300
_SLICES: Final = 12
_SMALL_SPAN: Final = 20_000
"""Ids of an account that are looked at together; more are looked at a slice a run, all within an hour."""
_LAST_ID: Final = 2**63 - 1


@dataclass(slots=True)
class ProtectSweep:
    """A protect sweep hands cards to be decided about; swept twice, a card is decided about once or so.

    It is the net under what a reading triggers at once: it finds what a crash, a flushed Redis or a changed
    limit has left undone. It hands over no more than an account can take until it looks again.
    """

    pool: Pool
    config_manager: PollingConfigManager
    tasks: CardTasks
    clock: Clock = field(default_factory=SystemClock)
    page: int = _PAGE

    async def sweep(self, cause: SweepCause, draining: asyncio.Event) -> int:
        """Return how many cards were handed over; ends early when ``draining`` is set."""
        total = 0
        for account in self.config_manager.snapshot.accounts.values():
            if (
                _concerns(cause, account)
                and account.polling_enabled
                and not account.is_paused(self.clock.now())
            ):
                total += await self._sweep_account(cause, account, draining)
        return total

    async def _sweep_account(
        self, cause: SweepCause, account: CarrierAccount, draining: asyncio.Event
    ) -> int:
        terms, now = billing_terms(account), self.clock.now()
        if terms is None or draining.is_set():
            return 0
        cycle = billing_cycle(now, terms.billing_day, terms.tz)
        most = min(_MOST_PER_RUN, max(self.page, int(account.qps * _BUSY_S)))
        after_id, last_id = (0, _LAST_ID) if cause is not SweepCause.USAGE else await self._slice(account)
        # All at once: asked for page by page, the candidates might be gathered and sorted for each page.
        rows = await self.pool.fetch(
            CANDIDATES[cause], account.id, after_id, cycle, now, _IN_SERVICE, most, last_id
        )
        handed = 0
        for at in range(0, len(rows), self.page):
            if draining.is_set():
                break
            handed += await self.tasks.protect(row["id"] for row in rows[at : at + self.page])
        if handed:
            log.info("停复机待判定", account=account.code, cause=cause.value, cards=handed)
        return handed

    async def _slice(self, account: CarrierAccount) -> tuple[int, int]:
        """Return between which ids to look this time: no run reads all cards of a large account.

        Readings that cross a line are seen as they are written, and used-up pools by themselves; what is
        left to find is what a crash has swallowed. All is looked at if a plan or the account just changed.
        """
        extent = await self.pool.fetchrow(EXTENT, account.id)
        if extent is None or extent["first_id"] is None:
            return 0, 0
        before, last = extent["first_id"] - 1, extent["last_id"]
        slices = min(_SLICES, -(-(last - before) // _SMALL_SPAN))
        if extent["is_changed"] or slices <= 1:
            return before, last
        # Half a period off, so that a firing a little early or late takes no slice twice.
        turn = int(self.clock.now().timestamp() + _PERIOD_S / 2) // _PERIOD_S % slices
        width = -(-(last - before) // slices)
        return before + turn * width, min(before + (turn + 1) * width, last)


async def count_candidates(conn: Conn, account: CarrierAccount, cause: SweepCause, now: datetime) -> int:
    """Return how many cards sweeps of the account would hand over, did it ask for that: too many, if any.

    Those of used-up pools count as usage.
    """
    terms = billing_terms(account)
    if terms is None:
        return 0
    causes = (cause, SweepCause.POOL) if cause is SweepCause.USAGE else (cause,)
    parts = " UNION ".join(f"({CANDIDATES[part]})" for part in causes)
    query = f"SELECT count(*) FROM ({parts}) AS c"  # noqa: S608 - constants
    cycle = billing_cycle(now, terms.billing_day, terms.tz)
    return int(await conn.fetchval(query, account.id, 0, cycle, now, _IN_SERVICE, None, _LAST_ID))


def _concerns(cause: SweepCause, account: CarrierAccount) -> bool:
    match cause:
        case SweepCause.USAGE | SweepCause.POOL:
            return account.protect_enabled
        case SweepCause.EXPIRY:
            return account.stop_on_expiry
        case SweepCause.ROLLOVER | SweepCause.RAISED:
            return True
