"""Faults of Redis and PostgreSQL that a background loop outlives."""

from datetime import timedelta
from typing import Final

from junhong_cmp.asynq import outages
from junhong_cmp.asynq.client import BulkEnqueueError
from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.db import retrying
from junhong_cmp.db.retrying import DATABASE_FAULTS

PASSING_FAULTS: Final[tuple[type[Exception], ...]] = (*FAULTS, *DATABASE_FAULTS)
"""What a loop waits out and tries again; anything else is a defect of this program."""

ENQUEUE_FAULTS: Final[tuple[type[Exception], ...]] = (*PASSING_FAULTS, BulkEnqueueError)
"""The same where tasks are enqueued as well."""

AWAY_DELAY: Final = timedelta(seconds=30)
"""How long a task waits that finds Redis or PostgreSQL away."""


def is_dependency_outage(error: BaseException) -> bool:
    """Whether Redis or PostgreSQL as a whole is away, so that the same may work a little later."""
    return isinstance(error, BulkEnqueueError) or retrying.is_outage(error) or outages.is_outage(error)
