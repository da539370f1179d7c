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
from junhong_cmp.imports.report import format_rows, write_report
from junhong_cmp.imports.row_store import record_rows
from junhong_cmp.storage.errors import StorageUnavailableError


def cells_of(line: str) -> list[str]:
    (cells,) = csv.reader(io.StringIO(line, newline=""))
    return cells


def test_a_row_reads_as_an_operator_expects() -> None:
    rows = [
        (5, "rejected", "8.98605E+19", "ICCID 是科学计数法", ["甲", "乙"]),
        (6, "imported", "89860400000000000001", None, []),
        (7, "skipped", "898604B7192270274525", "已存在", []),
    ]
    assert format_rows(rows) == (
        '5,"已拒绝","\'8.98605E+19","ICCID 是科学计数法","甲；乙"\r\n'
        '6,"已导入","\'89860400000000000001","",""\r\n'
        '7,"已跳过","898604B7192270274525","已存在",""\r\n'
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_value_comes_back_and_no_cell_starts_a_formula(value: str, reason: str) -> None:
    number, status, shown, why, _ = cells_of(format_rows([(1, "skipped", show(value), reason, [])]))
    assert (number, status) == ("1", "已跳过")
    assert shown.removeprefix("'") == show(value).removeprefix("'")
    for cell in (shown, why):
        assert re.match(r"\s*[=+\-@＝＋－＠]", cell) is None


async def test_a_file_of_many_pages_and_writes_has_each_row_once(pool: asyncpg.Pool, tmp_path: Path) -> None:
    lines = {line: ("甲", "乙") if line % 1000 == 0 else () for line in (*range(2, 2600), *range(9000, 9010))}
    async with pool.acquire() as conn:
        results = [
            RowResult(line_no=line, status=RowStatus.IMPORTED, value=f"{line:020d}", warnings=warnings)
            for line, warnings in lines.items()
        ]
        await record_rows(conn, 1, results)
    await write_report(pool, 1, tmp_path / "result.csv")
    text = (tmp_path / "result.csv").read_bytes().decode("utf-8")
    assert text == '\ufeff"行号","结果","ICCID","原因","提醒"\r\n' + "".join(
        f'{line},"已导入","\'{line:020d}","","{"；".join(warnings)}"\r\n' for line, warnings in lines.items()
    )


async def test_a_full_disk_is_said_to_be_one(pool: asyncpg.Pool) -> None:
    with pytest.raises(StorageUnavailableError, match=r"本机临时目录无法写入：.*：磁盘已满"):
        await write_report(pool, 1, Path("/dev/full"))
