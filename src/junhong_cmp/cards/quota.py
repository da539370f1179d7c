"""Budgets of calls that begin anew with the carrier's day."""

from datetime import datetime
from zoneinfo import ZoneInfo


def is_renewed(paused_at: datetime, now: datetime, tz: ZoneInfo) -> bool:
    """Tell whether a local midnight has passed since an account paused because its budget was used up."""
    return now.astimezone(tz).date() > paused_at.astimezone(tz).date()
