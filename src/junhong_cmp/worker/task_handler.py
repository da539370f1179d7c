"""Every task type of the platform and its handler: the same for all roles."""

from junhong_cmp.asynq.mux import ServeMux
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.redrive import ImportRedriveHandler
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.handlers.cleanup import DataCleanupHandler
from junhong_cmp.polling.handlers.realname import RealnameHandler
from junhong_cmp.polling.package_watch import PackageWatch
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.rule_handlers import RuleHandlers
from junhong_cmp.worker.services import Services


class TaskHandler:
    """A task handler hands each task to the handler of its type.

    A consumer has the same handlers as a leader: whoever takes a task must be able to do it.
    """

    def __init__(self, services: Services) -> None:
        rules = RuleHandlers.of(services)
        self._rules = rules
        self._polls = (
            CarddataHandler(services.polling_base, PackageWatch(services.pool, rules.evaluator)),
            CardstatusHandler(services.polling_base),
            RealnameHandler(services.polling_base),
        )
        self._mux = ServeMux()
        for poll in self._polls:
            self._mux.handle(poll.task_type, poll)
        self._mux.handle(
            TaskType.IOT_CARD_IMPORT,
            CardImportHandler(services.pool, services.storage, services.polling_lifecycle),
        )
        self._mux.handle(TaskType.IMPORT_REDRIVE, ImportRedriveHandler(services.pool, services.client))
        self._mux.handle(TaskType.DATA_CLEANUP, DataCleanupHandler(services.pool, clock=services.clock))
        for card_handler in (rules.package, rules.protect):
            self._mux.handle(card_handler.task_type, card_handler)
        for handler in rules.periodic:
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
        await self._rules.evaluator.close()
