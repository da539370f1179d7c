from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.retry_after import LONGEST_PAUSE, parse_retry_after

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5),
        (" 120 ", 120),
        ("0", 1),
        ("3600", 3600),
        ("315360000", 3600),
        ("9" * 18, 3600),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 1),
        ("Sun, 01 Mar 2036 12:00:00 GMT", 3600),
        ("Sunday, 01-Mar-26 12:00:30 GMT", 30),
    ],
)
def test_seconds_and_dates_are_followed_between_a_second_and_an_hour(value: str, seconds: int) -> None:
    assert parse_retry_after(value, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value", [None, "", "-5", "soon", "1.5.2", "1e9", "８", "9" * 40, "\x00", "99 99 99"]
)
def test_garbage_says_nothing(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None


@given(st.text(max_size=60))
def test_no_text_breaks_it(value: str) -> None:
    pause = parse_retry_after(value, NOW)
    assert pause is None or timedelta(seconds=1) <= pause <= LONGEST_PAUSE
