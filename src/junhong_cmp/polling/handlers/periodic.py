"""What the handlers of cron entries have in common."""

import asyncio
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import ClassVar, Final

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.db.retrying import DATABASE_FAULTS, is_outage
from junhong_cmp.polling.tasks import TaskType

_OUTAGE_DELAY: Final = timedelta(seconds=30)


class PeriodicHandler(ABC):
    """A periodic handler does a cron entry's work; while PostgreSQL is away it asks to be called again.

    The work must bear being done twice: a task is delivered at least once.
    """

    task_type: ClassVar[TaskType]

    async def process_task(self, task: ProcessingTask) -> None:
        """Do the work once."""
        try:
            await self.run(task.draining)
        except DATABASE_FAULTS as error:
            if not is_outage(error):
                raise
            raise PutBack(_OUTAGE_DELAY, f"数据库不可用：{type(error).__name__}") from error

    @abstractmethod
    async def run(self, draining: asyncio.Event) -> None:
        """Do the work; end early, at a place where it can be taken up again, once ``draining`` is set."""
