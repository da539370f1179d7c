"""Every task type of the platform and its handler: the same for all roles."""

from junhong_cmp.asynq.mux import ServeMux
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.redrive import ImportRedriveHandler
from junhong_cmp.polling.alert_sweep import AlertSweep
from junhong_cmp.polling.handlers.alert_check import AlertCheckHandler
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.handlers.cleanup import DataCleanupHandler
from junhong_cmp.polling.handlers.cycle_rollover import CycleRolloverHandler
from junhong_cmp.polling.handlers.expiry_check import ExpiryCheckHandler
from junhong_cmp.polling.handlers.operation_followup import OperationFollowupHandler
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.handlers.quota_reset import QuotaResetHandler
from junhong_cmp.polling.handlers.realname import RealnameHandler
from junhong_cmp.polling.handlers.usage_rollup import UsageRollupHandler
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.services import Services


class TaskHandler:
    """A task handler hands each task to the handler of its type.

    A consumer has the same handlers as a leader: whoever takes a task must be able to do it.
    """

    def __init__(self, services: Services) -> None:
        self._polls = tuple(
            kind(services.polling_base) for kind in (CarddataHandler, CardstatusHandler, RealnameHandler)
        )
        self._mux = ServeMux()
        for poll in self._polls:
            self._mux.handle(poll.task_type, poll)
        self._mux.handle(
            TaskType.IOT_CARD_IMPORT,
            CardImportHandler(services.pool, services.storage, services.polling_lifecycle),
        )
        self._mux.handle(TaskType.IMPORT_REDRIVE, ImportRedriveHandler(services.pool, services.client))
        self._mux.handle(TaskType.DATA_CLEANUP, DataCleanupHandler(services.pool))
        for handler in _periodic_handlers(services):
            self._mux.handle(handler.task_type, handler)

    @property
    def task_types(self) -> tuple[str, ...]:
        """The registered task types, sorted."""
        return self._mux.patterns

    async def process_task(self, task: ProcessingTask) -> None:
        """Process one task with the handler of its type."""
        await self._mux.process_task(task)

    async def close(self) -> None:
        """Finish what handlers have gathered; call it after the last task."""
        for poll in self._polls:
            await poll.close()


def _periodic_handlers(services: Services) -> tuple[PeriodicHandler, ...]:
    """Return the handlers of the platform's cron entries."""
    sweep = AlertSweep(services.pool, services.polling_config)
    return (
        AlertCheckHandler(sweep),
        ExpiryCheckHandler(sweep),
        CycleRolloverHandler(services.pool),
        UsageRollupHandler(services.pool),
        QuotaResetHandler(services.pool),
        OperationFollowupHandler(
            pool=services.pool,
            gateway=services.gateway,
            config_manager=services.polling_config,
            concurrency=services.polling_concurrency,
        ),
    )
