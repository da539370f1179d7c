from datetime import timedelta

from tests.imports.card_files import make_import

from junhong_cmp.cli.import_progress import Pace, PaceMeter
from junhong_cmp.imports.model import ImportStatus, ImportTask


def at(total: int, lines: int | None = 1001) -> ImportTask:
    """An import with this many rows behind it."""
    return make_import(
        status=ImportStatus.RUNNING, total=total, imported=total, next_line=total + 2, file_lines=lines
    )


def test_a_pace_takes_two_looks() -> None:
    meter = PaceMeter(None)
    assert meter.observe(at(0), 5.0) == Pace(None, None)
    assert meter.observe(at(100), 6.0) == Pace(100.0, timedelta(seconds=9))


def test_only_the_last_seconds_count() -> None:
    meter = PaceMeter(1001)
    for second in range(30):
        meter.observe(at(second), second)
    pace = meter.observe(at(29 + 100), 30.0)
    assert pace.rows_per_s is not None
    assert pace.rows_per_s > 9


def test_nothing_is_promised_of_an_import_that_stands_or_whose_length_is_unknown() -> None:
    meter = PaceMeter(None)
    meter.observe(at(10, None), 0.0)
    assert meter.observe(at(10, None), 1.0) == Pace(None, None)
    assert meter.observe(at(30, None), 2.0) == Pace(10.0, None)


def test_more_lines_than_expected_leave_no_time() -> None:
    meter = PaceMeter(5)
    meter.observe(at(0, 5), 0.0)
    assert meter.observe(at(10, 5), 1.0) == Pace(10.0, timedelta(0))
