import asyncio
import csv
import hashlib
import io
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.imports import workbooks
from tests.imports.card_files import iccid, make_import
from tests.polling.samples import make_account

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.limits import WorkbookLimits
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.rows import Candidate
from junhong_cmp.imports.source import CardSource
from junhong_cmp.storage.errors import StorageUnavailableError
from junhong_cmp.storage.store import open_storage


def task_for(data: bytes, *, name: str = "卡", sheet: str = "") -> ImportTask:
    digest = hashlib.sha256(data).hexdigest()
    return make_import(file_name=name, sheet=sheet, file_sha256=digest, file_bytes=len(data))


async def source_of(data: bytes, *, name: str = "卡", sheet: str = "") -> CardSource:
    storage = open_storage("memory://")
    await storage.put("file", data)
    source = CardSource(storage, task_for(data, name=name, sheet=sheet))
    await source.inspect(lambda: None)
    return source


async def judge(data: bytes, *, first_line: int = 0) -> list[Judged]:
    source = await source_of(data)
    return [one async for batch in source.outcomes(make_account(), first_line) for one in batch]


def as_csv(rows: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue().encode()


def as_xlsx(rows: Sequence[Sequence[str]]) -> bytes:
    return workbooks.xlsx({"卡": [list(row) for row in rows]})


def as_xls(rows: Sequence[Sequence[str]]) -> bytes:
    return workbooks.xls({"卡": [list(row) for row in rows]})


ROWS = [["套餐", "ICCID", "备注"], *[["月包", iccid(n), "x"] for n in range(1200)], ["", "合计", ""]]


@pytest.mark.parametrize("write", [as_csv, as_xlsx, as_xls])
@pytest.mark.parametrize("first_line", [0, 700])
async def test_every_format_gives_the_same_outcomes(write: object, first_line: int) -> None:
    assert callable(write)
    judged = await judge(write(ROWS), first_line=first_line)
    assert [one.last_line for one in judged] == list(range(max(first_line, 2), 1203))
    cards = [one.outcome.value for one in judged if isinstance(one.outcome, Candidate)]
    assert cards == [iccid(n) for n in range(max(first_line - 2, 0), 1200)]


async def test_notes_about_a_workbook() -> None:
    sheets: workbooks.Sheets = {
        "说明": [["x"]],
        "卡": [["ICCID", "备注"], [iccid(1)]],
        "又": [["ICCID"], [iccid(2)]],
    }
    source = await source_of(workbooks.xlsx(sheets), name="卡.csv", sheet="又")
    judged = [one async for batch in source.outcomes(make_account(), 0) for one in batch]
    assert [one.outcome.value for one in judged] == [iccid(2)]
    assert source.notes == (
        "文件扩展名是 .csv，内容却是 Excel 工作簿（.xlsx），已按内容读取",
        "只读取了工作表“又”，未读取：说明、卡",
    )


async def test_a_text_has_no_sheet_to_choose() -> None:
    source = await source_of(b"ICCID\n", name="卡.csv", sheet="又")
    assert source.notes == ("文本文件没有工作表，指定的工作表未起作用",)


async def test_leaving_early_ends_the_child() -> None:
    source = await source_of(as_xlsx([["ICCID"], *[[iccid(n)] for n in range(20_000)]]))
    async with aclosing(source.outcomes(make_account(), 0)) as batches:
        await anext(batches)
    parsers = [one for one in psutil.Process().children() if "parser_child" in " ".join(one.cmdline())]
    assert parsers == []


async def test_a_file_that_was_replaced_is_refused() -> None:
    storage = open_storage("memory://")
    await storage.put("file", b"ICCID\n1\n")
    with pytest.raises(FileRefusedError, match="SHA-256 不符"):
        await CardSource(storage, task_for(b"ICCID\n2\n")).inspect(lambda: None)


@pytest.mark.parametrize("write", [as_csv, as_xlsx])
async def test_a_file_that_is_replaced_after_the_first_look_is_refused(write: object) -> None:
    assert callable(write)
    data, other = (write([["ICCID"], *[[iccid(n)] for n in range(start, start + 50)]]) for start in (0, 100))
    storage = open_storage("memory://")
    await storage.put("file", data)
    source = CardSource(storage, task_for(data))
    await source.inspect(lambda: None)
    await storage.put("file", other)
    with capture_logs(), pytest.raises(FileRefusedError, match="在导入过程中被更改"):
        async for _ in source.outcomes(make_account(), 0):
            pass


async def test_a_large_workbook_is_refused_while_it_is_looked_over() -> None:
    data = as_xlsx([["ICCID"]])
    storage = open_storage("memory://")
    await storage.put("file", data + bytes(5000))
    source = CardSource(storage, task_for(data), workbook_limits=WorkbookLimits(file_bytes=2000))
    with pytest.raises(FileRefusedError, match="文件过大"):
        await source.inspect(lambda: None)


async def test_a_disk_that_takes_no_copy_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = await source_of(as_xlsx([["ICCID"], [iccid(1)]]))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageUnavailableError, match=r"本机临时目录无法写入：.*：不存在"):
        await anext(source.outcomes(make_account(), 0))


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=25)
ICCIDS = st.integers(0, 30).map(iccid) | st.sampled_from(["8.98605E+19", "ICCID", "合计", " ", ""]) | CELLS


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(CELLS, ICCIDS), max_size=30))
def test_each_row_with_content_has_one_outcome_in_every_format(rows: list[tuple[str, str]]) -> None:
    filled = [number for number, row in enumerate(rows, 2) if any(cell.strip() for cell in row)]
    table = [["套餐", "ICCID"], *map(list, rows)]
    for write in (as_csv, as_xlsx):
        judged = asyncio.run(judge(write(table)))
        assert [one.outcome.line_no for one in judged] == filled
