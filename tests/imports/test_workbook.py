import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.imports import workbooks

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.header import Field
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.workbook import CardSheet, open_workbook

A, B = "89860400000000000015", "89860400000000000023"
LIMITS = ImportLimits(columns=6, preamble_lines=5)


def card_sheet(sheets: workbooks.Sheets, *, name: str = "", hidden: tuple[str, ...] = ()) -> CardSheet:
    data = io.BytesIO(workbooks.xlsx(sheets, hidden=hidden))
    return CardSheet(open_workbook(data, FileFormat.XLSX, LIMITS, WorkbookLimits()), name, LIMITS)


def test_both_formats_give_the_same_rows() -> None:
    sheets: workbooks.Sheets = {
        "卡": [["某公司"], [None, "卡号ICCID", "套餐"], [None, A, {"number": "30"}], [], [None, B]]
    }
    got = []
    for found, data in ((FileFormat.XLSX, workbooks.xlsx(sheets)), (FileFormat.XLS, workbooks.xls(sheets))):
        workbook = open_workbook(io.BytesIO(data), found, LIMITS, WorkbookLimits())
        got.append(list(CardSheet(workbook, "", LIMITS).rows()))
    assert got[0] == got[1]
    first, second = got[0]
    assert (first.line, first.fields, first.kinds) == (
        3, {Field.ICCID: A, Field.PLAN: "30"}, {Field.PLAN: CellKind.NUMBER}
    )  # fmt: skip
    assert (second.line, second.last_line, second.kinds, second.surplus_cells) == (5, 5, None, False)


def test_the_first_visible_sheet_with_a_header_is_read() -> None:
    sheets: workbooks.Sheets = {
        "说明": [["x"]],
        "旧": [["ICCID"]],
        "卡": [["备注", "ICCID"], ["x", A]],
        "又": [["ICCID"]],
    }
    sheet = card_sheet(sheets, hidden=("旧",))
    assert (sheet.name, sheet.other_sheets, sheet.ignored_columns) == ("卡", ["说明", "旧", "又"], ("备注",))
    assert card_sheet(sheets, name="旧", hidden=("旧",)).name == "旧"


@pytest.mark.parametrize(
    ("sheets", "name", "reason"),
    [
        ({"卡": [["ICCID"]]}, "别的", "没有名为“别的”的工作表；现有：卡"),
        ({"卡": [["接入号", "套餐"]]}, "", "最像表头的是第 1 行：接入号、套餐"),
        ({"卡": [], "说明": [["x"]]}, "", "工作表“卡”找不到 ICCID 列.*没有可读的内容。工作表“说明”找不到"),
        ({"卡": [["x"]] * 5 + [["ICCID"]]}, "", "找不到 ICCID 列"),
        ({"卡": [["ICCID", "ICCID"]]}, "", "多个 ICCID 列"),
    ],
)
def test_no_card_sheet_is_explained(sheets: workbooks.Sheets, name: str, reason: str) -> None:
    with pytest.raises(FileRefusedError, match=reason):
        card_sheet(sheets, name=name)


def test_a_workbook_of_hidden_sheets_has_nothing_to_read() -> None:
    with pytest.raises(FileRefusedError, match="没有可见的工作表"):
        card_sheet({"卡": [["ICCID"]]}, hidden=("卡",))


def test_short_long_and_blank_rows() -> None:
    rows = list(
        card_sheet(
            {"卡": [["套餐", "ICCID"], ["月包"], ["x", A, "多余"], [" ", "  "], ["", *["x"] * 8]]}
        ).rows()
    )
    assert [(row.line, row.fields.get(Field.ICCID), row.surplus_cells, row.fault) for row in rows] == [
        (2, "", False, None),
        (3, A, True, None),
        (5, None, False, "列数过多"),
    ]
    assert rows[2].excerpt == "x，x，x，x，x"


def test_a_formula_without_a_value_is_a_row() -> None:
    (row,) = card_sheet({"卡": [["ICCID"], [{"formula": "A1"}]]}).rows()
    assert (row.fields, row.kinds) == ({Field.ICCID: ""}, {Field.ICCID: CellKind.FORMULA})


PARTS = workbooks.xlsx_parts({"卡": [["套餐", "ICCID"], ["月包", A], [{"number": "1"}, B]]})


@given(
    st.sampled_from(sorted(PARTS)),
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from(b"<>/&;\"'=!0aAr \xff")), min_size=1, max_size=6),
)
def test_any_damage_to_a_part_gives_rows_or_a_refusal(part: str, damage: list[tuple[int, int]]) -> None:
    content = bytearray(str(PARTS[part]).encode())
    for at, value in damage:
        content[at % len(content)] = value
    data = io.BytesIO(workbooks.archive(PARTS | {part: bytes(content)}))
    try:
        workbook = open_workbook(data, FileFormat.XLSX, LIMITS, WorkbookLimits())
        rows = list(CardSheet(workbook, "", LIMITS).rows())
    except FileRefusedError:
        return
    assert [row.line for row in rows] == sorted({row.line for row in rows})
