from pathlib import Path

from python_calamine import CalamineWorkbook

from junhong_cmp.exports.columns import TITLES, Cell
from junhong_cmp.exports.xlsx_cards import SHEET_ROWS, XlsxCards


def rows(count: int) -> list[list[Cell]]:
    return [[f"8986{number}", *[None] * (len(TITLES) - 1)] for number in range(count)]


def test_a_full_sheet_is_followed_by_another(tmp_path: Path) -> None:
    path = tmp_path / "cards.xlsx"
    book = XlsxCards(path, sheet_rows=4)
    for row in rows(7):
        book.write([row])
    book.close()
    made = CalamineWorkbook.from_path(str(path))
    assert made.sheet_names == ["卡清单", "卡清单2", "卡清单3"]
    sheets = [made.get_sheet_by_name(name).to_python() for name in made.sheet_names]
    assert [len(sheet) - 1 for sheet in sheets] == [3, 3, 1]
    assert all(sheet[0][0] == "ICCID" for sheet in sheets)
    assert [row[0] for sheet in sheets for row in sheet[1:]] == [row[0] for row in rows(7)]


def test_a_sheet_is_as_long_as_excel_allows() -> None:
    assert SHEET_ROWS == 1_048_576
