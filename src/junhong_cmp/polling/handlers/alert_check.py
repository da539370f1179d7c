"""Usage beyond a threshold, readings that stay away, queries that keep failing."""

import asyncio
from typing import Final

from junhong_cmp.cards.alerts import USAGE_KINDS, AlertKind
from junhong_cmp.polling.alert_sweep import AlertSweep
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.protect_sweep import ProtectSweep, SweepCause
from junhong_cmp.polling.tasks import TaskType

_KINDS: Final = (*USAGE_KINDS, AlertKind.STALE_DATA, AlertKind.API_FAILURE)


class AlertCheckHandler(PeriodicHandler):
    """An alert check handler raises what the rules say, and hands over cards to be stopped or resumed."""

    task_type = TaskType.ALERT_CHECK

    def __init__(self, sweep: AlertSweep, protect: ProtectSweep) -> None:
        self._sweep = sweep
        self._protect = protect

    async def run(self, draining: asyncio.Event) -> None:
        """Sweep once."""
        await self._sweep.sweep(_KINDS, draining)
        for cause in SweepCause:
            await self._protect.sweep(cause, draining)
