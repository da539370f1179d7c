"""Pauses of whole accounts: known here at once, told to everybody through PostgreSQL."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog

from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.gateway.errors import AccountPausing, BreakerOpen, Saturated, Throttled
from junhong_cmp.polling.account_load import AccountLoads

log = structlog.stdlib.get_logger(__name__)

_SHORTEST: Final = timedelta(milliseconds=100)
_LONGEST_GROWN: Final = timedelta(minutes=1)
"""Up to here pauses grow: so soon after it has recovered is a carrier asked again."""
_REMEMBERED: Final = timedelta(minutes=2)
"""So long after its last pause an account that was not refused again begins anew."""


class _Refused(NamedTuple):
    """The last pause of an account none of whose calls has succeeded since."""

    length: timedelta
    until: datetime


class AccountPauses:
    """Account pauses remember which accounts rest, and write each pause down once.

    A carrier that throttles refuses every call in flight at once: the first refusal is written,
    the others find the account resting already. What is remembered here bridges the time until
    the configuration has been read with the pause in it; from then on the database alone tells,
    so that a pause ended there is ended for everybody. Calls in flight were given the account as it was
    before: what counts is the one that ``accounts`` has now.

    A carrier that refuses again once its pause is over, without any success between, gets twice the pause,
    and so on up to a minute: each round in vain costs a claim and a write-back for every card that is due.
    One that refuses only what comes too fast is asked more slowly from then on (``loads``).
    """

    def __init__(
        self,
        pool: Pool,
        *,
        reread: Callable[[], Awaitable[bool]],
        accounts: Callable[[], Mapping[int, CarrierAccount]] = dict,
        loads: AccountLoads | None = None,
        max_pause: timedelta = timedelta(hours=1),
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._accounts = accounts
        self._loads = loads
        self._reread = reread
        self._max_pause = max_pause
        self._clock = clock if clock is not None else SystemClock()
        self._until: dict[int, datetime] = {}
        self._refused: dict[int, _Refused] = {}

    def remaining(self, account: CarrierAccount, type_until: datetime | None = None) -> timedelta | None:
        """Return how much longer the account, or its task type, rests; None when it may be called.

        ``type_until`` is the end of the pause of the task type in question, if it has one.
        """
        now, known = self._clock.now(), self._accounts().get(account.id, account)
        until = self._until.get(account.id)
        if until is not None and until <= now:
            del self._until[account.id]
            until = None
        for other in (known.paused_until, type_until):
            if other is not None and (until is None or other > until):
                until = other
        return None if until is None or until <= now else until - now

    async def pause(
        self, account: CarrierAccount, error: AccountPausing, *, longest: timedelta | None = None
    ) -> timedelta:
        """Let the account rest as the carrier asked, longer if it only ever refuses; return how long.

        ``longest`` replaces the usual bound where the length is our own reckoning and no carrier's wish: such
        a pause does not grow, nor does that of a breaker, which grows it itself.
        """
        asked = min(max(error.pause, _SHORTEST), self._max_pause if longest is None else longest)
        resting = self.remaining(account)
        if resting is not None and resting >= asked - timedelta(seconds=1):
            return resting
        grows = longest is None and not isinstance(error, BreakerOpen)
        length = self._grown(account.id, asked) if grows else asked
        until = self._clock.now() + length
        self._until[account.id] = until
        log.warning("账号暂停轮询", account=account.code, reason=error.reason, pause_s=length.total_seconds())
        if isinstance(error, Throttled) and not isinstance(error, Saturated):
            await self._ease(account)
        await self._tell(account, until, error.reason)
        return length

    def check(self, account: CarrierAccount) -> None:
        """Let nobody ask who waited for a token while the account was told to rest.

        Raises:
            AccountPausing: the account rests, as those who asked just before have learnt.

        """
        resting = self.remaining(account)
        if resting is not None:
            raise AccountPausing("账号暂停，不再发出已排队的调用", resting)

    async def _ease(self, account: CarrierAccount) -> None:
        if self._loads is None:
            return
        try:
            await self._loads.refused(account)
        except FAULTS as fault:  # the next refusal lowers it
            log.warning("账号的调用速率未能下调", account=account.code, error=type(fault).__name__)

    async def _tell(self, account: CarrierAccount, until: datetime, reason: str) -> None:
        try:
            async with self._pool.acquire() as conn:
                await pause_account(conn, account.id, until, reason)
            if await self._reread() and self._until.get(account.id) == until:
                del self._until[account.id]
        except DATABASE_FAULTS as fault:
            # Others learn it from the carrier themselves; this process keeps to it.
            log.warning("账号暂停未能写入数据库", account=account.code, error=type(fault).__name__)

    def answered(self, account_id: int) -> None:
        """Note that a call of the account has succeeded: its next pause is as long as the carrier asks."""
        if self._refused:
            self._refused.pop(account_id, None)

    def _grown(self, account_id: int, asked: timedelta) -> timedelta:
        """Return the length of a pause that begins now, and remember it for the next one."""
        now, last = self._clock.now(), self._refused.get(account_id)
        length = asked
        if last is not None and now < last.until + _REMEMBERED:
            length = max(asked, min(2 * last.length, _LONGEST_GROWN, self._max_pause))
        self._refused[account_id] = _Refused(length, now + length)
        return length
