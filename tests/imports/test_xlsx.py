import io

import pytest
import xlsxwriter
from tests.imports import workbooks

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.xlsx import XlsxWorkbook


def open_xlsx(data: bytes) -> XlsxWorkbook:
    return XlsxWorkbook(io.BytesIO(data), ImportLimits(), WorkbookLimits())


@pytest.mark.parametrize("constant_memory", [False, True])
def test_a_workbook_by_a_writer_that_is_not_ours(constant_memory: bool) -> None:  # noqa: FBT001 - a parameter of the test
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"constant_memory": constant_memory})
    sheet, hidden = book.add_worksheet("卡 & 号"), book.add_worksheet("旧")
    book.add_chartsheet("图")
    hidden.hide()
    sheet.write_row(0, 1, ["ICCID", "月<包>"])
    sheet.write_string(1, 1, "89860400000000000015")
    sheet.write_number(1, 2, 29.9)
    sheet.write_formula(2, 1, "=A1", None, "x")
    sheet.write_rich_string(3, 1, book.add_format({"bold": True}), "898", "604")
    book.close()
    opened = open_xlsx(out.getvalue())
    assert (opened.sheets, opened.hidden) == (["卡 & 号", "旧"], {"旧"})
    rows = list(opened.rows("卡 & 号"))
    assert [(row.number, dict(row.cells)) for row in rows] == [
        (1, {1: "ICCID", 2: "月<包>"}),
        (2, {1: "89860400000000000015", 2: "29.9"}),
        (3, {1: "x"}),
        (4, {1: "898604"}),
    ]
    assert rows[2].kinds == {1: CellKind.FORMULA}


def test_parts_are_found_by_relations_with_absolute_paths_and_other_names() -> None:
    parts = workbooks.xlsx_parts({"卡": [["ICCID"]]})
    relations = str(parts["xl/_rels/workbook.xml.rels"]).replace("worksheets/sheet1.xml", "/Xl/Blatt.xml")
    moved = {
        **{name: content for name, content in parts.items() if "sheet1" not in name},
        "xl/_rels/workbook.xml.rels": relations,
        "xl/blatt.xml": parts["xl/worksheets/sheet1.xml"],
    }
    opened = open_xlsx(workbooks.archive(moved))
    assert [dict(row.cells) for row in opened.rows("卡")] == [{0: "ICCID"}]


def test_a_sheet_in_a_foreign_place_is_not_read() -> None:
    link = 'Id="rId1" Type="x/worksheet" Target="http://192.0.2.1/" TargetMode="External"'
    relations = f"<Relationships><Relationship {link}/></Relationships>"
    opened = open_xlsx(workbooks.xlsx({"卡": [["ICCID"]]}, parts={"xl/_rels/workbook.xml.rels": relations}))
    assert opened.sheets == []


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"卡.csv": "ICCID"}, "压缩文件，不是 Excel"),
        ({"word/document.xml": "x"}, "Word"),
        ({"xl/workbook.xml": "<a>"}, "XML"),
        ({"xl/workbook.xml": b"\xff\xfe"}, "XML"),
        ({"xl/workbook.xml": "<?xml version='1.0' encoding='nonsense'?><a/>"}, "XML"),
        ({"xl/workbook.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}, "DOCTYPE"),
    ],
)
def test_what_is_no_workbook_is_refused(parts: dict[str, str | bytes], reason: str) -> None:
    with pytest.raises(FileRefusedError, match=reason):
        open_xlsx(workbooks.archive(parts))


def test_a_missing_sheet_part_is_damage() -> None:
    parts = {
        name: part for name, part in workbooks.xlsx_parts({"卡": [["a"]]}).items() if "sheet1" not in name
    }
    with pytest.raises(FileRefusedError, match=r"缺少 xl/worksheets/sheet1\.xml"):
        list(open_xlsx(workbooks.archive(parts)).rows("卡"))
