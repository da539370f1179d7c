"""The cron table is valid, and every entry has a handler and a queue that is consumed."""

from datetime import timedelta

from redis.asyncio import Redis

from junhong_cmp.asynq.scheduler import Scheduler
from junhong_cmp.config.sections import QueueSettings
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.cron import cron_entries

ENTRIES = cron_entries(redrive_every=timedelta(minutes=1))


def test_entries_are_accepted_by_the_scheduler() -> None:
    Scheduler(Redis(), ENTRIES)  # connects to nothing


def test_every_entry_is_consumed_somewhere() -> None:
    for entry in ENTRIES:
        assert entry.task.type in set(TaskType)
        assert entry.options.queue in QueueSettings.model_validate({}).weights
