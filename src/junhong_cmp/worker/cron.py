"""The table of cron entries: what the leader submits periodically, whoever then consumes it."""

from datetime import timedelta
from typing import Any, Final

from junhong_cmp.asynq.misfire import MisfirePolicy
from junhong_cmp.asynq.scheduler_entry import CronEntry, OverlapPolicy
from junhong_cmp.asynq.task import EnqueueOptions, Task
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType

_MINUTE: Final = timedelta(minutes=1)
_HALF_DAY: Final = timedelta(hours=12)


def cron_entries(*, redrive_every: timedelta) -> tuple[CronEntry, ...]:
    """Return all entries. An id is for ever: history and last run hang on it. Specs are in UTC.

    What runs every few minutes is not made up, for the next run does the same; of what runs seldom, one run
    is. No run begins while its predecessor is still at work, or waits for PostgreSQL or a gateway.
    """
    return (*_frequent(redrive_every), *_seldom())


def _frequent(redrive_every: timedelta) -> tuple[CronEntry, ...]:
    return (
        _entry(
            "import_redrive",
            f"@every {int(redrive_every.total_seconds())}s",
            TaskType.IMPORT_REDRIVE,
            timeout=timedelta(seconds=50),
            overlap=OverlapPolicy.ALLOW,
        ),
        _entry("operation_followup", "@every 60s", TaskType.OPERATION_FOLLOWUP, timeout=10 * _MINUTE),
        _entry("alert_check", "*/5 * * * *", TaskType.ALERT_CHECK, timeout=10 * _MINUTE),
        # Every quarter: a local midnight is on one everywhere.
        _entry("quota_reset", "*/15 * * * *", TaskType.QUOTA_RESET, timeout=_MINUTE),
    )


def _seldom() -> tuple[CronEntry, ...]:
    once, half_day = MisfirePolicy.FIRE_ONCE, _HALF_DAY
    return (
        # Hourly, for billing days begin at the midnights of many time zones.
        _entry("cycle_rollover", "7 * * * *", TaskType.CYCLE_ROLLOVER, timeout=30 * _MINUTE, misfire=once),
        # After midnight in China, when carriers' interfaces have little to do.
        _entry(
            "orphan_diff",
            "53 17 * * *",
            TaskType.ORPHAN_DIFF,
            timeout=120 * _MINUTE,
            misfire=once,
            grace=half_day,
        ),
        _entry("expiry_check", "23 * * * *", TaskType.EXPIRY_CHECK, timeout=30 * _MINUTE, misfire=once),
        # In the small hours of China, off the full hour when everybody's jobs run.
        _entry(
            "data_cleanup",
            "17 19 * * *",
            TaskType.DATA_CLEANUP,
            timeout=30 * _MINUTE,
            misfire=once,
            grace=half_day,
        ),
        _entry(
            "usage_rollup",
            "41 19 * * *",
            TaskType.USAGE_ROLLUP,
            timeout=120 * _MINUTE,
            misfire=once,
            grace=half_day,
        ),
    )


def _entry(
    name: str,
    spec: str,
    task_type: TaskType,
    *,
    timeout: timedelta,
    misfire: MisfirePolicy = MisfirePolicy.SKIP,
    **more: Any,
) -> CronEntry:
    is_seldom = misfire is not MisfirePolicy.SKIP
    return CronEntry(
        id=name,
        spec=spec,
        task=Task(task_type),
        options=EnqueueOptions(
            queue=CRON_QUEUE,
            max_retry=3 if is_seldom else 0,
            timeout=timeout,
            retention=timedelta(days=1) if is_seldom else 10 * _MINUTE,
        ),
        misfire=misfire,
        **({"overlap": OverlapPolicy.SKIP} | more),
    )
