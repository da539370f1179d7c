"""When a failed task is tried again."""

import random
from collections.abc import Callable
from datetime import timedelta

import structlog

from junhong_cmp.asynq.processing_task import ProcessingTask

log = structlog.stdlib.get_logger(__name__)

RetryDelay = Callable[[int, BaseException, ProcessingTask], timedelta]
"""``(times retried so far, error, task) -> delay``."""

_POWER_CAP = 30
"""Beyond this many retries the delay no longer grows (about 9.4 days), so it stays a sane number."""


def default_retry_delay(retried: int, _error: BaseException, _task: ProcessingTask) -> timedelta:
    """Return the delay Asynq uses: ``n⁴ + 15 + rand(0..29)·(n+1)`` seconds for the n-th retry."""
    n = min(max(retried, 0), _POWER_CAP)
    return timedelta(seconds=n**4 + 15 + random.randint(0, 29) * (n + 1))


def choose_delay(policy: RetryDelay, error: BaseException, task: ProcessingTask) -> timedelta:
    """Return what ``policy`` says, or Asynq's delay if the policy itself fails."""
    try:
        delay = policy(task.retried, error, task)
        if not isinstance(delay, timedelta):
            raise TypeError(f"重试间隔必须是 timedelta，实际为 {type(delay).__name__}")  # noqa: TRY301 - told below
    except Exception:  # a faulty policy must not keep its tasks from being retried
        log.exception("重试间隔回调出错，改用默认间隔", task_type=task.type, task_id=task.id)
        return default_retry_delay(task.retried, error, task)
    return delay


def every_error_is_failure(_error: BaseException) -> bool:
    """Count every error as a failure of the task: Asynq's default."""
    return True
