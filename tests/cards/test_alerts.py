from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.polling.samples import make_card

from junhong_cmp.cards.alerts import AlertKind, AlertRule, alert_text
from junhong_cmp.cards.model import PollProgress
from junhong_cmp.cards.usage import CycleId

NOW = datetime(2026, 3, 10, tzinfo=UTC)
CYCLE = CycleId("2026-03-01")


def text(kind: AlertKind, threshold: float, **card: Any) -> str | None:
    rule = AlertRule(
        id=1, name="r", kind=kind, account_id=None, category=None, level="warning", threshold=threshold
    )
    return alert_text(rule, make_card(**card), CYCLE, NOW)


@pytest.mark.parametrize(
    ("card", "speaks"),
    [
        ({"threshold_kb": 1000, "cycle_used_kb": 800, "cycle": CYCLE}, True),
        ({"threshold_kb": 1000, "cycle_used_kb": 799, "cycle": CYCLE}, False),
        ({"threshold_kb": 1000, "cycle_used_kb": 5000, "cycle": CycleId("2026-02-01")}, False),
        ({"threshold_kb": None, "cycle_used_kb": 5000, "cycle": CYCLE}, False),
        ({"threshold_kb": 0, "cycle_used_kb": 5000, "cycle": CYCLE}, False),
    ],
)
def test_a_threshold_needs_a_reading_of_the_current_cycle(card: dict[str, Any], *, speaks: bool) -> None:
    assert (text(AlertKind.THRESHOLD, 0.8, **card) is not None) is speaks


def test_volumes_are_told_in_the_units_people_use() -> None:
    said = text(AlertKind.THRESHOLD, 0.8, threshold_kb=512_000, cycle_used_kb=450_000, cycle=CYCLE)
    assert said == "本周期已用 439.5MB，阈值 500MB 的 80%"


@pytest.mark.parametrize(
    ("hours", "enabled", "speaks"), [(24, True, True), (23.9, True, False), (99, False, False)]
)
def test_data_is_stale_by_the_last_good_reading(hours: float, *, enabled: bool, speaks: bool) -> None:
    progress = PollProgress(attempted_at=NOW, succeeded_at=NOW - timedelta(hours=hours))
    found = text(AlertKind.STALE_DATA, 24, carddata=progress, polling_enabled=enabled)
    assert (found is not None) is speaks


def test_a_card_never_read_is_stale_from_its_creation() -> None:
    assert text(AlertKind.STALE_DATA, 24) == "建卡 24 小时以来没有成功读到流量"


@pytest.mark.parametrize(("failures", "threshold", "speaks"), [(3, 3, True), (2, 3, False), (0, 0, False)])
def test_failures_count_for_any_type(failures: int, threshold: float, *, speaks: bool) -> None:
    found = text(AlertKind.API_FAILURE, threshold, cardstatus=PollProgress(NOW, None, failures))
    assert (found is not None) is speaks


@pytest.mark.parametrize(
    ("days", "said"),
    [(5.0, "将于 2026-03-15 到期，还有 5.0 天"), (-1.0, "已于 2026-03-09 到期"), (8.0, None)],
)
def test_expiry_is_told_ahead_and_after(days: float, said: str | None) -> None:
    assert text(AlertKind.EXPIRY, 7, expires_at=NOW + timedelta(days=days)) == said
    assert text(AlertKind.EXPIRY, 7) is None
