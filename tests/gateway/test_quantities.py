from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.quantities import whole_kb


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0, "KB", 0),
        (1023, "B", 0),
        (1024, "b", 1),
        (12345, None, 12345),
        (Decimal("12.34"), "MB", 12636),
        ("12.34MB", None, 12636),
        ("12.34 MB", "mb", 12636),
        ("1.5GB", None, 1_572_864),
        ("7", "MB", 7168),
        (" 8 K ", None, 8),
        (2, "GiB", 2_097_152),
        (Decimal("1e-999999999"), "TB", 0),
        (2**50, "KB", 2**50),
    ],
)
def test_volumes_become_whole_kb(value: object, unit: str | None, expected: int) -> None:
    assert whole_kb(value, unit, default_unit="KB") == expected


def test_the_account_decides_only_where_the_answer_is_silent() -> None:
    assert whole_kb(1, None, default_unit="MB") == 1024
    assert whole_kb(1, "KB", default_unit="MB") == 1
    assert whole_kb("1KB", None, default_unit="MB") == 1


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (-1, "KB"),
        (Decimal("-0.1"), "KB"),
        (2**50 + 1, "KB"),
        (10**4000, "KB"),
        (Decimal("1e999"), "KB"),
        (Decimal("1e999999999"), "B"),
        (2**50, "MB"),
        (1, "块"),
        (1, "parsecs"),
        ("1MB", "GB"),
        ("1,024", "KB"),
        ("1e3", "KB"),
        ("８", "KB"),
        ("-3", "KB"),
        ("", "KB"),
        (None, "KB"),
        (True, "KB"),
        ([1], "KB"),
    ],
)
def test_what_is_no_possible_volume_is_refused(value: object, unit: str) -> None:
    with pytest.raises(BadResponse):
        whole_kb(value, unit, default_unit="KB")


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_more_data_never_reads_as_less(one: int, other: int) -> None:
    smaller, larger = sorted((one, other))
    assert whole_kb(smaller, "B", default_unit="KB") <= whole_kb(larger, "B", default_unit="KB")
