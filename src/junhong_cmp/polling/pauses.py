"""Pauses of whole accounts: known here at once, told to everybody through PostgreSQL."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import structlog

from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.gateway.errors import AccountPausing

log = structlog.stdlib.get_logger(__name__)


class AccountPauses:
    """Account pauses remember which accounts rest, and write each pause down once.

    A carrier that throttles refuses every call in flight at once: the first refusal is written,
    the others find the account resting already. What is remembered here bridges the time until
    the configuration has been read with the pause in it; from then on the database alone tells,
    so that a pause ended there is ended for everybody.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        reread: Callable[[], Awaitable[bool]],
        max_pause: timedelta = timedelta(hours=1),
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._reread = reread
        self._max_pause = max_pause
        self._clock = clock if clock is not None else SystemClock()
        self._until: dict[int, datetime] = {}

    def remaining(self, account: CarrierAccount, type_until: datetime | None = None) -> timedelta | None:
        """Return how much longer the account, or its task type, rests; None when it may be called.

        ``type_until`` is the end of the pause of the task type in question, if it has one.
        """
        now = self._clock.now()
        until = self._until.get(account.id)
        if until is not None and until <= now:
            del self._until[account.id]
            until = None
        for other in (account.paused_until, type_until):
            if other is not None and (until is None or other > until):
                until = other
        return None if until is None or until <= now else until - now

    async def pause(
        self, account: CarrierAccount, error: AccountPausing, *, longest: timedelta | None = None
    ) -> timedelta:
        """Let the account rest as the carrier asked, within bounds; return for how long.

        ``longest`` replaces the usual bound where the length is our own reckoning and no carrier's wish.
        """
        bound = self._max_pause if longest is None else longest
        length = min(max(error.pause, timedelta(milliseconds=100)), bound)
        resting = self.remaining(account)
        if resting is not None and resting >= length - timedelta(seconds=1):
            return resting
        until = self._clock.now() + length
        self._until[account.id] = until
        log.warning("账号暂停轮询", account=account.code, reason=error.reason, pause_s=length.total_seconds())
        try:
            async with self._pool.acquire() as conn:
                await pause_account(conn, account.id, until, error.reason)
            if await self._reread() and self._until.get(account.id) == until:
                del self._until[account.id]
        except DATABASE_FAULTS as fault:
            # Others learn it from the carrier themselves; this process keeps to it.
            log.warning("账号暂停未能写入数据库", account=account.code, error=type(fault).__name__)
        return length
