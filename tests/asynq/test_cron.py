from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from junhong_cmp.asynq.cron import CronSchedule, InvalidCronError

START = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)  # a Sunday


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("*/5 * * * *", "2026-03-01T10:05:00+00:00"),
        ("0 10 * * *", "2026-03-02T10:00:00+00:00"),
        ("0 0 ? * mon", "2026-03-02T00:00:00+00:00"),
        ("0 0 1 JAN ?", "2027-01-01T00:00:00+00:00"),
        ("@hourly", "2026-03-01T11:00:00+00:00"),
        ("@daily", "2026-03-02T00:00:00+00:00"),
        ("@midnight", "2026-03-02T00:00:00+00:00"),
        ("@weekly", "2026-03-08T00:00:00+00:00"),
        ("@monthly", "2026-04-01T00:00:00+00:00"),
        ("@yearly", "2027-01-01T00:00:00+00:00"),
        ("@annually", "2027-01-01T00:00:00+00:00"),
        ("@every 90s", "2026-03-01T10:01:30+00:00"),
        ("@every 10ms", "2026-03-01T10:00:01+00:00"),
        ("CRON_TZ=Asia/Shanghai 30 2 * * *", "2026-03-01T18:30:00+00:00"),
        ("TZ=Asia/Shanghai @daily", "2026-03-01T16:00:00+00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00+00:00"),
    ],
)
def test_next_run(spec: str, expected: str) -> None:
    assert CronSchedule(spec).next_after(START) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "0 0 30 2 *",
        "@fortnightly",
        "@every",
        "@every soon",
        "TZ=Nowhere/Land * * * * *",
        "TZ=",
        "CRON_TZ=Asia/Shanghai",
        "TZ=../etc/passwd * * * * *",
    ],
)
def test_a_bad_spec_is_named(spec: str) -> None:
    with pytest.raises(InvalidCronError, match="定时表达式无效"):
        CronSchedule(spec)


def test_the_default_zone_counts_unless_the_spec_names_one() -> None:
    shanghai = ZoneInfo("Asia/Shanghai")
    assert CronSchedule("0 0 * * *", tz=shanghai).next_after(START).hour == 16
    assert CronSchedule("TZ=UTC 0 0 * * *", tz=shanghai).next_after(START).hour == 0


@pytest.mark.parametrize("spec", ["*/5 * * * *", "@every 5m"])
def test_due_runs_are_those_after_the_one_and_up_to_the_other(spec: str) -> None:
    schedule = CronSchedule(spec)
    runs = schedule.due(START, START + timedelta(minutes=15), 10)
    assert [run - START for run in runs] == [timedelta(minutes=minutes) for minutes in (5, 10, 15)]
    late = schedule.due(START, START + timedelta(minutes=15, seconds=0.5), 2)
    assert [run - START for run in late] == [timedelta(minutes=10), timedelta(minutes=15)]
    assert schedule.due(START, START + timedelta(minutes=4, seconds=59.9), 10) == []
    assert schedule.due(START, START - timedelta(hours=1), 10) == []


def runs_of(spec: str, first: datetime, last: datetime) -> list[datetime]:
    schedule, runs, at = CronSchedule(spec), list[datetime](), first
    while (at := schedule.next_after(at)) <= last:
        runs.append(at)
    return runs


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe"]
)
@pytest.mark.parametrize("fields", ["30 2 * * *", "30 1 * * *", "0 0 * * *"])
def test_a_daily_run_happens_once_a_day_through_summer_time(zone: str, fields: str) -> None:
    tz = ZoneInfo(zone)
    first, last = datetime(2026, 1, 1, 12, tzinfo=tz), datetime(2028, 1, 1, 12, tzinfo=tz)
    days = [run.astimezone(tz).date() for run in runs_of(f"TZ={zone} {fields}", first, last)]
    assert days == [first.date() + timedelta(days=number) for number in range(1, 731)]


@pytest.mark.parametrize("spec", ["TZ=Europe/Berlin 30 2 * * *", "@every 7h", "15 */6 * * 1-5"])
def test_looking_back_finds_what_looking_ahead_did(spec: str) -> None:
    first, last = datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 4, 5, tzinfo=UTC)
    assert CronSchedule(spec).due(first, last, 1000) == runs_of(spec, first, last)
