"""A cron task as a handler gets it."""

from datetime import UTC, datetime, timedelta

from junhong_cmp.asynq.processing_task import Handler, ProcessingTask
from junhong_cmp.polling.handlers.periodic import PeriodicHandler


def firing(handler: PeriodicHandler, *, draining: bool = False) -> ProcessingTask:
    task = ProcessingTask(
        id="cron:x:1", type=handler.task_type, deadline=datetime.now(UTC) + timedelta(minutes=1)
    )
    if draining:
        task.draining.set()
    return task


async def fire(handler: PeriodicHandler, *, draining: bool = False) -> None:
    task_handler: Handler = handler
    await task_handler.process_task(firing(handler, draining=draining))
