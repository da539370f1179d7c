"""Cards about to expire, and expired."""

import asyncio

from junhong_cmp.cards.alerts import AlertKind
from junhong_cmp.polling.alert_sweep import AlertSweep
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.protect_sweep import ProtectSweep, SweepCause
from junhong_cmp.polling.tasks import TaskType


class ExpiryCheckHandler(PeriodicHandler):
    """An expiry check handler raises what the rules about expiry say.

    Cards whose time is over are stopped where their account asks for that.
    """

    task_type = TaskType.EXPIRY_CHECK

    def __init__(self, sweep: AlertSweep, protect: ProtectSweep) -> None:
        self._sweep = sweep
        self._protect = protect

    async def run(self, draining: asyncio.Event) -> None:
        """Sweep once."""
        await self._sweep.sweep((AlertKind.EXPIRY,), draining)
        await self._protect.sweep(SweepCause.EXPIRY, draining)
