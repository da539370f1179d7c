"""Whether PostgreSQL takes what is written: an answer that cannot be kept is not worth asking for."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Final

import structlog

from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS, is_outage

log = structlog.stdlib.get_logger(__name__)

_PROBE = "UPDATE poll_minute SET done = done WHERE false"
"""Touches no row, and yet a read-only database refuses it."""

_PROBE_EVERY: Final = timedelta(seconds=1)


class WriteGuard:
    """A write guard remembers that a write was refused, until the database takes one again.

    A read-only database (a standby, say) lets cards be loaded, so loading alone does not tell. After a
    refused write nobody asks a carrier; about each second one caller tries whether that is over.
    """

    def __init__(
        self, pool: Pool, *, probe_every: timedelta = _PROBE_EVERY, clock: Callable[[], float] = monotonic
    ) -> None:
        self._pool = pool
        self._probe_s = probe_every.total_seconds()
        self._clock = clock
        self._refused = False
        self._next_probe = 0.0
        self._probing = asyncio.Lock()

    def note(self, error: Exception) -> None:
        """Remember a failed write, if it is the database that cannot take any."""
        if not is_outage(error):
            return
        self._next_probe = self._clock() + self._probe_s
        if not self._refused:
            self._refused = True
            log.warning("数据库拒绝写入，暂停调用运营商", error=type(error).__name__)

    @property
    def is_closed(self) -> bool:
        """Whether a write was refused and none has been taken since."""
        return self._refused

    async def try_write(self) -> bool:
        """Tell whether writes are taken again, by a write if it is time; while one tries, others don't."""
        if self._probing.locked() or self._clock() < self._next_probe:
            return False
        async with self._probing:
            try:
                await self._pool.execute(_PROBE)
            except DATABASE_FAULTS as error:
                log.debug("数据库仍不可写", error=type(error).__name__)
                self._next_probe = self._clock() + self._probe_s
                return False
            self._refused = False
            log.info("数据库恢复可写，恢复调用运营商")
            return True
