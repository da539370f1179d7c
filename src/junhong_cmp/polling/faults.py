"""Faults of Redis and PostgreSQL that a background loop outlives."""

from typing import Final

from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.db.retrying import DATABASE_FAULTS

PASSING_FAULTS: Final[tuple[type[Exception], ...]] = (*FAULTS, *DATABASE_FAULTS)
"""What a loop waits out and tries again; anything else is a defect of this program."""
