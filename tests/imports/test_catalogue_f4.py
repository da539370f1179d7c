"""F4: whatever way a text is written, its cards are found; a number that was spoiled is never guessed."""

import asyncpg
import pytest
from tests.imports.card_files import iccid
from tests.imports.runs import ImportRuns

from junhong_cmp.imports.model import ImportStatus

TEXT = f"清单😀\n\nICCID,套餐\n{iccid(1)},月包\n8.98604E+19,月包\n{iccid(2)}\0,月包\n{iccid(3)},年包🎉\n"
GBK = TEXT.replace("😀", "").replace("🎉", "")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "mixed"])
@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
        ("gb18030", b""),
        ("gbk", b""),
    ],
)
async def test_f4_every_encoding_and_line_end(
    pool: asyncpg.Pool, runs: ImportRuns, encoding: str, mark: bytes, line_end: str
) -> None:
    text = GBK if encoding == "gbk" else TEXT
    if line_end == "mixed":
        *lines, _ = text.split("\n")
        text = "".join(line + ("\n", "\r\n", "\r")[at % 3] for at, line in enumerate(lines))
    else:
        text = text.replace("\n", line_end)
    done = await runs.result_of(mark + text.encode(encoding))
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, 4, 2)
    rejected = await pool.fetch(
        "SELECT line_no, reason_code FROM import_row WHERE status = 'rejected' ORDER BY line_no"
    )
    assert [tuple(row) for row in rejected] == [(5, "iccid_scientific"), (6, "iccid_alphabet")]
    plans = [row["plan"] for row in await pool.fetch("SELECT plan FROM iot_card ORDER BY iccid")]
    assert plans == ["月包", "年包" if encoding == "gbk" else "年包🎉"]


@pytest.mark.parametrize(
    "number", ["8.98604E+19", "8.98604e19", "8.98604E19", "89860400000000000000.0", "+8.9E+19"]
)
async def test_f4_a_spoiled_number_is_an_error_with_its_line(
    pool: asyncpg.Pool, runs: ImportRuns, number: str
) -> None:
    done = await runs.result_of(f"ICCID\n{iccid(1)}\n{number}\n".encode())
    assert (done.imported, done.rejected) == (1, 1)
    row = await pool.fetchrow("SELECT line_no, reason FROM import_row WHERE status = 'rejected'")
    assert row is not None
    assert row["line_no"] == 3
    assert "请把该列设为文本格式后重新填写" in row["reason"]


@pytest.mark.parametrize(
    "data", [b"\0" * 5000, b"ICC\0ID\n89860400000000000015\n", "ICCID\n".encode("utf-32"), b"ICCID\n\xff\xff"]
)
async def test_f4_what_is_no_text_is_refused(runs: ImportRuns, data: bytes) -> None:
    refusal = await runs.refusal_of(data)
    assert "不是文本文件" in refusal or "无法识别文件编码" in refusal
