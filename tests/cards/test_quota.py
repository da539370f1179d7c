from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from junhong_cmp.cards.quota import is_renewed


@pytest.mark.parametrize(
    ("zone", "paused_at", "now", "renewed"),
    [
        ("Asia/Shanghai", "2026-03-01T15:59", "2026-03-01T16:00", True),  # 23:59 and 00:00 there
        ("Asia/Shanghai", "2026-03-01T16:00", "2026-03-02T15:59", False),
        ("UTC", "2026-03-01T15:59", "2026-03-01T16:00", False),
        ("Asia/Kathmandu", "2026-03-01T18:14", "2026-03-01T18:15", True),
    ],
)
def test_the_day_is_the_carriers(zone: str, paused_at: str, now: str, *, renewed: bool) -> None:
    first, second = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (paused_at, now))
    assert is_renewed(first, second, ZoneInfo(zone)) is renewed
