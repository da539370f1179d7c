"""Cards about to expire, and expired."""

import asyncio

from junhong_cmp.cards.alerts import AlertKind
from junhong_cmp.polling.alert_sweep import AlertSweep
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.tasks import TaskType


class ExpiryCheckHandler(PeriodicHandler):
    """An expiry check handler raises what the rules about expiry say; it stops no card."""

    task_type = TaskType.EXPIRY_CHECK

    def __init__(self, sweep: AlertSweep) -> None:
        self._sweep = sweep

    async def run(self, draining: asyncio.Event) -> None:
        """Sweep once."""
        await self._sweep.sweep((AlertKind.EXPIRY,), draining)
