"""Reading a Retry-After header, which may say anything."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_PAUSE: Final = timedelta(hours=1)
"""A carrier's word is followed up to this; after it one call finds out whether it still holds."""

_SHORTEST_PAUSE: Final = timedelta(seconds=1)
_SECONDS: Final = re.compile(r"[0-9]{1,18}")


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Return the pause asked for (seconds or HTTP date), from 1 s to 1 h; None if unreadable."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        seconds = min(int(text), int(LONGEST_PAUSE.total_seconds()))
        return max(timedelta(seconds=seconds), _SHORTEST_PAUSE)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # "-0000" and obsolete forms: HTTP dates are always GMT
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment - now, _SHORTEST_PAUSE), LONGEST_PAUSE)
