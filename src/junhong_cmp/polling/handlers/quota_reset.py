"""Pauses for a used-up budget, ended when the carrier's day begins."""

import asyncio

import structlog

from junhong_cmp.cards.quota import is_renewed
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.errors import QuotaExhausted
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_PAUSED = """
    SELECT id, code, tz, paused_at FROM carrier_account
    WHERE pause_reason = $1 AND paused_at IS NOT NULL AND paused_until > $2 ORDER BY id
"""
_END = """
    UPDATE carrier_account
    SET paused_until = NULL, paused_at = NULL, pause_reason = NULL, updated_at = now()
    WHERE id = $1 AND pause_reason = $2 AND paused_at = $3
    RETURNING true
"""


class QuotaResetHandler(PeriodicHandler):
    """A quota reset handler ends such a pause at the account's local midnight; any other pause stays.

    One that is ordered anew in the meantime is left alone: the carrier has just said so again.
    """

    task_type = TaskType.QUOTA_RESET

    def __init__(self, pool: Pool, *, clock: Clock | None = None) -> None:
        self._pool = pool
        self._clock = clock if clock is not None else SystemClock()

    async def run(self, draining: asyncio.Event) -> None:  # noqa: ARG002 - a handful of rows
        """End the pauses whose midnight has passed."""
        now = self._clock.now()
        for row in await self._pool.fetch(_PAUSED, QuotaExhausted.reason, now):
            zone = find_zone(row["tz"])
            if zone is None or not is_renewed(row["paused_at"], now, zone):
                continue
            if await self._pool.fetchval(_END, row["id"], QuotaExhausted.reason, row["paused_at"]):
                log.info("账号额度已更新，恢复轮询", account=row["code"])
