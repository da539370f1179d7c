from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from junhong_cmp.gateway.simulator_cards import CardBook, expected_usage_kb
from junhong_cmp.gateway.simulators.onelink_usage import UsageBatch

ICCID = "89860012345678900017"


def item(month: str, now: datetime, *, unknown_rate: float = 0.0) -> dict[str, Any] | None:
    book = CardBook(seed=7, unknown_rate=unknown_rate, operation_delay=timedelta(0))
    told = UsageBatch(book).item([ICCID], month, now)
    return None if told is None else dict(told)


@pytest.mark.parametrize(
    ("month", "deadline", "end"),
    [
        ("202603", "20260309", datetime(2026, 3, 9, 15, 59, 59, 999000, tzinfo=UTC)),
        ("202602", "20260228", datetime(2026, 2, 28, 15, 59, 59, 999000, tzinfo=UTC)),
        ("202512", "20251231", datetime(2025, 12, 31, 15, 59, 59, 999000, tzinfo=UTC)),
    ],
)
def test_a_month_is_told_to_its_last_whole_day(month: str, deadline: str, end: datetime) -> None:
    told = item(month, datetime(2026, 3, 10, 4, tzinfo=UTC))
    assert told is not None
    assert told["deadLine"] == deadline
    assert told["dataAmountList"][0]["dataAmount"] == str(expected_usage_kb(ICCID, end, 7))


def test_on_its_first_day_a_month_has_no_figures_yet() -> None:
    told = item("202603", datetime(2026, 2, 28, 16, tzinfo=UTC))
    assert told is not None
    assert told["deadLine"].isspace()
    assert told["dataAmountList"][0]["dataAmount"].isspace()


@pytest.mark.parametrize("month", ["202604", "202509", "2026-3", ""])
def test_only_six_months_are_kept(month: str) -> None:
    assert item(month, datetime(2026, 3, 10, 4, tzinfo=UTC)) is None


def test_an_unknown_card_is_told_in_its_place() -> None:
    told = item("202603", datetime(2026, 3, 10, 4, tzinfo=UTC), unknown_rate=1)
    assert told is not None
    assert told["dataAmountList"][0]["status"] == "11011"
