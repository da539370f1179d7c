"""The cron table is valid, seen by the tools, and every entry has a handler and a queue that is consumed."""

from datetime import timedelta

from redis.asyncio import Redis
from tests.waiting import wait_until

from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.misfire import MisfirePolicy
from junhong_cmp.asynq.scheduler import Scheduler
from junhong_cmp.asynq.scheduler_entry import OverlapPolicy
from junhong_cmp.config.sections import QueueSettings
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType
from junhong_cmp.worker.cron import cron_entries

ENTRIES = cron_entries(redrive_every=timedelta(minutes=1))


def test_entries_are_accepted_by_the_scheduler() -> None:
    Scheduler(Redis(), ENTRIES)  # connects to nothing


def test_every_entry_is_consumed_somewhere() -> None:
    for entry in ENTRIES:
        assert entry.task.type in set(TaskType)
        assert entry.options.queue in QueueSettings.model_validate({}).weights


def test_every_periodic_type_has_one_entry() -> None:
    types = [entry.task.type for entry in ENTRIES]
    of_cards = {*POLLING_TASK_TYPES, TaskType.POLLING_PACKAGE, TaskType.POLLING_PROTECT}
    assert sorted(types) == sorted(set(TaskType) - of_cards - {TaskType.IOT_CARD_IMPORT})
    assert len({entry.id for entry in ENTRIES}) == len(ENTRIES)


def test_what_runs_seldom_is_made_up_and_nothing_runs_beside_itself() -> None:
    for entry in ENTRIES:
        is_daily_or_hourly = not entry.spec.startswith(("@every", "*/"))
        assert (entry.misfire is MisfirePolicy.FIRE_ONCE) is is_daily_or_hourly
        assert entry.overlap is OverlapPolicy.SKIP or entry.id == "import_redrive"
        assert entry.options.timeout is not None


async def test_the_tools_see_them(redis: Redis) -> None:
    scheduler = Scheduler(redis, ENTRIES)
    await scheduler.start()
    inspector = Inspector(redis)

    async def seen() -> bool:
        return {entry.id for entry in await inspector.scheduler_entries()} == {entry.id for entry in ENTRIES}

    await wait_until(seen, description="all entries")
    await scheduler.stop()
