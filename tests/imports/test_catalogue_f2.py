"""F2: a workbook that is a bomb, or reaches for what is not its own, costs no more than its refusal."""

import struct

import psutil
import pytest
from tests.imports import workbooks
from tests.imports.card_files import iccid
from tests.imports.runs import ImportRuns

from junhong_cmp.imports.model import ImportStatus

CARDS: workbooks.Sheets = {"卡": [["ICCID"], [iccid(1)]]}
SHEET = "xl/worksheets/sheet1.xml"
MEBIBYTE = 1024**2


def with_part(name: str, content: str | bytes) -> bytes:
    return workbooks.xlsx(CARDS, parts={name: content})


def declaring(data: bytes, size: int) -> bytes:
    """The archive with each part said to inflate to ``size`` bytes."""
    told, at = bytearray(data), 0
    while (at := told.find(b"PK\x01\x02", at)) >= 0:
        struct.pack_into("<I", told, at + 24, size)
        at += 4
    return bytes(told)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
NOISE = bytes((n * n * 7919 >> 5) % 251 for n in range(70_000))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (with_part(SHEET, b" " * 150 * MEBIBYTE), "疑似压缩炸弹"),
        (with_part(SHEET, b"".join(NOISE for _ in range(3_100))), "解压后超过 200 MB"),
        (workbooks.archive({f"xl/{n}": "" for n in range(1_001)}), "含有 1001 个部分"),
        (declaring(workbooks.xlsx(CARDS), 1), "工作簿已损坏"),
        (declaring(workbooks.xlsx(CARDS), 0xFFFF_FFF0), "解压后超过 200 MB"),
        (with_part(SHEET, f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><worksheet>&l9;</worksheet>'), "DOCTYPE"),
        (with_part("xl/workbook.xml", f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><workbook>&l9;</workbook>'),
         "DOCTYPE"),
        (with_part(SHEET, '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><worksheet>&f;</worksheet>'),
         "DOCTYPE"),
        (with_part(SHEET, '<!DOCTYPE x SYSTEM "http://192.0.2.1/x.dtd"><worksheet/>'), "DOCTYPE"),
    ],
    ids=["blanks", "more than fits", "many parts", "declared too small", "declared too large",
         "a billion laughs", "in the list of sheets", "a file of ours", "another's address"],
)  # fmt: skip
async def test_f2_a_hostile_workbook(runs: ImportRuns, data: bytes, reason: str) -> None:
    before = psutil.Process().memory_info().rss
    assert reason in await runs.refusal_of(data)
    assert psutil.Process().memory_info().rss - before < 64 * MEBIBYTE
    running = [" ".join(child.cmdline()) for child in psutil.Process().children()]
    assert [one for one in running if "parser_child" in one] == []


DECLARED = (
    '<worksheet><dimension ref="A1:XFD1048576"/><sheetData>'
    '<row r="1"><c t="inlineStr"><is><t>ICCID</t></is></c></row>'
    f'<row r="1048576"><c t="inlineStr"><is><t>{iccid(1)}</t></is></c></row>'
    "</sheetData></worksheet>"
)
LINK = "xl/externalLinks/externalLink1.xml"
ELSEWHERE = '<Relationship Id="rId1" TargetMode="External" Target="http://192.0.2.1/x"/>'


@pytest.mark.parametrize(
    "parts",
    [
        {SHEET: DECLARED},
        {
            LINK: "<externalLink/>",
            "xl/externalLinks/_rels/externalLink1.xml.rels": f"<Relationships>{ELSEWHERE}</Relationships>",
        },
    ],
    ids=["17 thousand million declared cells", "an external link"],
)
async def test_f2_what_is_declared_counts_for_nothing(
    runs: ImportRuns, parts: dict[str, str | bytes]
) -> None:
    done = await runs.result_of(workbooks.xlsx(CARDS, parts=parts))
    assert (done.status, done.imported) == (ImportStatus.DONE, 1)
