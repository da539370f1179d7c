"""The cron table is valid, and every entry has a handler and a queue that is consumed."""

from redis.asyncio import Redis

from junhong_cmp.asynq.scheduler import Scheduler
from junhong_cmp.config.sections import QueueSettings
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.worker.cron import CRON_ENTRIES


def test_entries_are_accepted_by_the_scheduler() -> None:
    Scheduler(Redis(), CRON_ENTRIES)  # connects to nothing


def test_every_entry_is_consumed_somewhere() -> None:
    for entry in CRON_ENTRIES:
        assert entry.task.type in set(TaskType)
        assert entry.options.queue in QueueSettings.model_validate({}).weights
