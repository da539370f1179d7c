import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.cells import exact_number, unescape


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("1064000000001", "1064000000001"),
        ("1.064000000001E12", "1064000000001"),
        ("29.899999999999999", "29.9"),
        ("30", "30"),
        ("100", "100"),
        ("0", "0"),
        ("-5", "-5"),
        ("999999999999999", "999999999999999"),
        ("460001234567890.0", "460001234567890"),
    ],
)
def test_a_number_is_shown_as_a_spreadsheet_shows_it(stored: str, shown: str) -> None:
    assert exact_number(stored) == shown


@pytest.mark.parametrize(
    "stored",
    [
        "1000000000000000",
        "8.98604E+19",
        "-1e16",
        "1e999999",
        "-1e9999999",
        "NaN",
        "INF",
        "",
        "x",
        "9" * 10_000,
        "1_0x",
    ],
)
def test_what_has_lost_digits_is_no_number(stored: str) -> None:
    assert exact_number(stored) is None


@given(st.from_regex(r"[-+]?[0-9]{0,3}\.?[0-9]{0,3}([eE][-+]?[0-9]{1,20})?", fullmatch=True))
def test_whatever_is_written_as_a_number_is_read_or_not_and_never_long(stored: str) -> None:
    shown = exact_number(stored)
    assert shown is None or len(shown) < 500


@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_every_whole_number_of_fifteen_digits_is_exact(number: int) -> None:
    assert exact_number(str(number)) == str(number)
    assert exact_number(repr(float(number))) == str(number)


def test_escapes_are_undone_and_lone_surrogates_replaced() -> None:
    assert unescape("a_x000D_b_x4E00_") == "a\rb一"
    assert unescape("_xD800_ _x12_ plain_x") == "\ufffd _x12_ plain_x"
