"""Time zones by the names accounts give them."""

from functools import lru_cache
from zoneinfo import ZoneInfo


@lru_cache(maxsize=1024)
def find_zone(name: str) -> ZoneInfo | None:
    """Return the time zone of this IANA name, or None when this machine knows none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; no path inside the database; a folder of it
        return None
