"""The table of cron entries: what the leader submits periodically, whoever then consumes it."""

from datetime import timedelta

from junhong_cmp.asynq.misfire import MisfirePolicy
from junhong_cmp.asynq.scheduler_entry import CronEntry
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType


def cron_entries(*, redrive_every: timedelta) -> tuple[CronEntry, ...]:
    """Return all entries. An id is for ever: history and last run hang on it. Specs are in UTC."""
    return (
        CronEntry(
            id="import_redrive",
            spec=f"@every {int(redrive_every.total_seconds())}s",
            task=Task(TaskType.IMPORT_REDRIVE),
            options=EnqueueOptions(
                queue=CRON_QUEUE,
                max_retry=0,
                timeout=timedelta(seconds=50),
                retention=timedelta(minutes=10),
            ),
            misfire=MisfirePolicy.SKIP,
        ),
        CronEntry(
            id="data_cleanup",
            spec="17 19 * * *",  # 03:17 in China, off the full hour when everybody's jobs run
            task=Task(TaskType.DATA_CLEANUP),
            options=EnqueueOptions(
                queue=CRON_QUEUE,
                max_retry=3,
                timeout=timedelta(minutes=30),
                retention=timedelta(days=1),
            ),
            misfire=MisfirePolicy.FIRE_ONCE,
            grace=timedelta(hours=12),
        ),
    )
