from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.asynq.go_text import format_duration, format_options, parse_duration
from junhong_cmp.asynq.task import EnqueueOptions


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (30, "30s"),
        (3600, "1h0m0s"),
        (90, "1m30s"),
        (90061.25, "25h1m1.25s"),
        (0.1, "100ms"),
        (0.0015, "1.5ms"),
        (0.000002, "2µs"),
        (-3, "-3s"),
    ],
)
def test_durations_are_written_as_in_go(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5h", 5400), ("+2m", 120), ("0", 0), (".5s", 0.5), ("3us", 0.000003), ("1h1m", 3660)],
)
def test_durations_are_read_as_in_go(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "1", "1d", "s", "1s ", "1 s", "-", "\uff11s", "2562048h", "9999999999999h"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, check=lambda error: error.args == (text,)):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30)))
def test_durations_survive(duration: timedelta) -> None:
    assert abs(parse_duration(format_duration(duration)) - duration) <= timedelta(microseconds=1)


def test_options_are_written_as_in_go() -> None:
    at = datetime(2026, 3, 1, 12, 0, 5, tzinfo=timezone(timedelta(hours=8)))
    options = EnqueueOptions(
        queue='lo"w',
        max_retry=3,
        timeout=timedelta(seconds=30),
        unique_for=timedelta(hours=1),
        process_in=timedelta(minutes=5),
        retention=timedelta(hours=1),
        deadline=at,
        process_at=at.astimezone(UTC),
        group="g",
    )
    assert format_options(options) == [
        'Queue("lo\\"w")',
        "MaxRetry(3)",
        "Timeout(30s)",
        "Unique(1h0m0s)",
        "ProcessIn(5m0s)",
        "Retention(1h0m0s)",
        "Deadline(Sun Mar  1 04:00:05 UTC 2026)",
        "ProcessAt(Sun Mar  1 04:00:05 UTC 2026)",
        'Group("g")',
    ]
    assert format_options(EnqueueOptions()) == ['Queue("default")']
