import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.defusing import as_cell, unmarked


def cells_of(line: str) -> list[str]:
    (cells,) = csv.reader(io.StringIO(line, newline=""))
    return cells


BEFORE = ["", " ", "\u3000", "\u200b", "\ufeff", "\u00a0\u2060"]
STARTS = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\ufe66", "\ufe62", "\ufe63", "\ufe6b"]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("start", STARTS)
def test_formulas_are_defused_in_any_width_and_behind_any_blanks(before: str, start: str) -> None:
    assert as_cell(f"{before}{start}1+1") == f'"\'{before}{start}1+1"'


@pytest.mark.parametrize("start", ["\t", "\r", "\0"])
def test_control_characters_at_the_start_are_defused(start: str) -> None:
    assert as_cell(f"{start}x") == f'"\'{start}x"'


@pytest.mark.parametrize(
    "text",
    [
        "89860400000000000001",
        "8.98605E+19",
        "1e5",
        "12,000",
        "007",
        " 12 ",
        "8８8",
        "1-2",
        "2026/11/30",
        "5%",
        "¥5",
    ],
)
def test_numbers_and_dates_stay_text(text: str) -> None:
    assert as_cell(text) == f'"\'{text}"'


@pytest.mark.parametrize(
    "text",
    ["", "合计", "一=1+1", "鿿1", "A=1", "z\u03381", "898604B7192270274525", 'a"b', 'a"=1"', "已\r\n=存"],
)
def test_other_text_is_only_quoted(text: str) -> None:
    assert cells_of(as_cell(text)) == [text]


@given(st.text(max_size=60))
def test_any_cell_comes_back_but_for_the_mark_of_text(text: str) -> None:
    (cell,) = cells_of(as_cell(text))
    assert cell in {text, f"'{text}"}
    if cell == text:
        bare = "".join(unicodedata.normalize("NFKC", text).split())
        assert not bare.startswith(tuple("=+-@"))
        assert not bare.replace(".", "", 1).isdecimal()


@given(st.text(max_size=60))
def test_what_marked_a_text_is_taken_off_again(text: str) -> None:
    (cell,) = cells_of(as_cell(text))
    bare = unmarked(text)
    assert unmarked(cell) == (text if cell != text else bare)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("'2026-01", "2026-01"),
        ("'=1+1", "=1+1"),
        ("'＝1", "＝1"),
        ('="2026-01"', "2026-01"),
        ('="a""b"', 'a"b'),
        ("'tis", "'tis"),
        ('=A1&"x"', '=A1&"x"'),
        ("'", "'"),
        ("", ""),
    ],
)
def test_only_the_mark_is_taken_off(text: str, bare: str) -> None:
    assert unmarked(text) == bare
