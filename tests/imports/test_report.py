import csv
import io
import re
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.model import RowResult, RowStatus
from junhong_cmp.imports.report import format_row, write_report
from junhong_cmp.storage.errors import StorageUnavailableError


def cells_of(line: str) -> list[str]:
    (cells,) = csv.reader(io.StringIO(line, newline=""))
    return cells


def test_a_row_reads_as_an_operator_expects() -> None:
    row = RowResult(
        line_no=5,
        status=RowStatus.REJECTED,
        value="8.98605E+19",
        reason="ICCID 是科学计数法",
        warnings=("甲", "乙"),
    )
    assert format_row(row) == '5,"已拒绝","\'8.98605E+19","ICCID 是科学计数法","甲；乙"\r\n'


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_value_comes_back_and_no_cell_starts_a_formula(value: str, reason: str) -> None:
    row = RowResult(line_no=1, status=RowStatus.SKIPPED, value=show(value), reason=reason)
    number, status, shown, why, _ = cells_of(format_row(row))
    assert (number, status) == ("1", "已跳过")
    assert shown.removeprefix("'") == show(value).removeprefix("'")
    for cell in (shown, why):
        assert re.match(r"\s*[=+\-@＝＋－＠]", cell) is None


async def test_a_full_disk_is_said_to_be_one(pool: asyncpg.Pool) -> None:
    with pytest.raises(StorageUnavailableError, match=r"本机临时目录无法写入：.*：磁盘已满"):
        await write_report(pool, 1, Path("/dev/full"))
