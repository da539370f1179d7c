from datetime import UTC, datetime, timedelta

import pytest

from junhong_cmp.gateway.simulators.unicom_door import SerialGuard

NOW = datetime(2026, 2, 28, 16, 0, 0, 41_000, tzinfo=UTC)
TIMESTAMP = "2026-03-01 00:00:00 041"
SERIAL = "20260301000000041500357"


def test_a_fresh_number_is_admitted_once() -> None:
    guard = SerialGuard()
    assert guard.problem_of(TIMESTAMP, SERIAL, NOW) is None
    assert guard.problem_of(TIMESTAMP, SERIAL, NOW) == "流水号已使用，签名无效"
    assert guard.problem_of(TIMESTAMP, SERIAL[:-1] + "8", NOW) is None


@pytest.mark.parametrize(
    ("timestamp", "serial", "problem"),
    [
        ("2026-03-01 00:00:00", SERIAL, "格式错误"),
        ("2026-03-01T00:00:00 041", SERIAL, "格式错误"),
        ("2026-13-01 00:00:00 041", SERIAL, "格式错误"),
        (TIMESTAMP, SERIAL[:-1], "格式错误"),
        (TIMESTAMP, f"{SERIAL}1", "格式错误"),
        (TIMESTAMP, SERIAL[:-1] + "x", "格式错误"),
        (TIMESTAMP, "20260301000001041500357", "不符"),
    ],
)
def test_numbers_that_are_none_are_refused(timestamp: str, serial: str, problem: str) -> None:
    found = SerialGuard().problem_of(timestamp, serial, NOW)
    assert found is not None
    assert problem in found


@pytest.mark.parametrize("late", [timedelta(minutes=5, seconds=1), timedelta(minutes=-5, seconds=-1)])
def test_only_near_its_own_time(late: timedelta) -> None:
    assert SerialGuard().problem_of(TIMESTAMP, SERIAL, NOW + late) == "时间戳超出允许范围"
