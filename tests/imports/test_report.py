import csv
import io
import re
import unicodedata
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.model import RowResult, RowStatus
from junhong_cmp.imports.report import as_cell, format_row, write_report
from junhong_cmp.storage.errors import StorageUnavailableError


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


@pytest.mark.parametrize("text", ["", "合计", "898604B7192270274525", 'a"b'])
def test_other_text_is_only_quoted(text: str) -> None:
    assert cells_of(as_cell(text)) == [text]


def test_a_row_reads_as_an_operator_expects() -> None:
    row = RowResult(
        line_no=5,
        status=RowStatus.REJECTED,
        value="8.98605E+19",
        reason="ICCID 是科学计数法",
        warnings=("甲", "乙"),
    )
    assert format_row(row) == '5,"已拒绝","\'8.98605E+19","ICCID 是科学计数法","甲；乙"\r\n'


@given(st.text(max_size=60))
def test_any_cell_comes_back_but_for_the_mark_of_text(text: str) -> None:
    (cell,) = cells_of(as_cell(text))
    assert cell in {text, f"'{text}"}
    if cell == text:
        bare = "".join(unicodedata.normalize("NFKC", text).split())
        assert not bare.startswith(tuple("=+-@"))
        assert not bare.replace(".", "", 1).isdecimal()


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_value_comes_back_and_no_cell_starts_a_formula(value: str, reason: str) -> None:
    row = RowResult(line_no=1, status=RowStatus.SKIPPED, value=show(value), reason=reason)
    number, status, shown, why, _ = cells_of(format_row(row))
    assert (number, status) == ("1", "已跳过")
    assert shown.removeprefix("'") == show(value).removeprefix("'")
    for cell in (shown, why):
        assert re.match(r"\s*[=+\-@＝＋－＠]", cell) is None


async def test_a_full_disk_is_said_to_be_one(pool: asyncpg.Pool) -> None:
    with pytest.raises(StorageUnavailableError, match="结果文件无法写入：磁盘已满"):
        await write_report(pool, 1, Path("/dev/full"))
