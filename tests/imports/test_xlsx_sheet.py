import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.cells import RawRow
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.xlsx_sheet import read_sheet

STRINGS = ["零", "一"]


def read(rows: str, *, piece: int = 7) -> list[RawRow]:
    data = f"<worksheet><dimension ref='A1:XFD1048576'/><sheetData>{rows}</sheetData></worksheet>".encode()
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    return list(read_sheet(pieces, STRINGS, ImportLimits(columns=5, cell_chars=10)))


def cell(content: str) -> tuple[str | None, CellKind | None]:
    (row,) = read(f"<row r='3'><c r='A3' t='s'><v>0</v></c>{content}</row>")
    return row.cells.get(1), row.kinds.get(1)


@pytest.mark.parametrize(
    ("content", "text", "kind"),
    [
        ("<c r='B3' t='s'><v>1</v></c>", "一", None),
        ("<c t='s'><v>1</v></c>", "一", None),
        ("<c r='B3'><v>8.98604E+19</v></c>", "8.98604E+19", CellKind.NUMBER),
        ("<c r='B3' t='n'><v> 12 </v></c>", "12", CellKind.NUMBER),
        ("<c r='B3' t='str'><f>A1</f><v>x</v></c>", "x", CellKind.FORMULA),
        ("<c r='B3'><f t='shared' si='0'/><v>5</v></c>", "5", CellKind.FORMULA),
        ("<c r='B3'><f>A1</f></c>", "", CellKind.FORMULA),
        ("<c r='B3' t='str'><v>x_x0041_</v></c>", "xA", None),
        (
            "<c r='B3' t='inlineStr'><is><r><t>a</t></r><r><t>b</t></r><rPh><t>c</t></rPh></is></c>",
            "ab",
            None,
        ),
        ("<c r='B3' t='e'><v>#N/A</v></c>", "#N/A", CellKind.ERROR),
        ("<c r='B3' t='b'><v>1</v></c>", "1", CellKind.BOOLEAN),
        ("<c r='B3' t='d'><v>2026-11-30</v></c>", "2026-11-30", CellKind.DATE),
        ("<c r='B3' t='new'><v>1</v></c>", "1", CellKind.NUMBER),
        ("<c r='B3' s='1'/>", None, None),
        ("<c r='B3' t='s'/>", None, None),
        (f"<c r='B3' t='str'><v>{'x' * 100}</v></c>", "x" * 11, None),
    ],
)
def test_every_kind_of_cell(content: str, text: str | None, kind: CellKind | None) -> None:
    assert cell(content) == (text, kind)


def test_rows_keep_their_numbers_and_blank_ones_are_left_out() -> None:
    last = "<row r='1048576'><c><v>3</v></c></row>"
    rows = read(f"<row r='2'><c r='A2'><v>1</v></c></row><row r='5'/><row><c><v>2</v></c></row>{last}")
    assert [row.number for row in rows] == [2, 6, 1_048_576]


def test_columns_beyond_the_cap_are_known_but_not_kept() -> None:
    (row,) = read("<row r='1'><c r='A1'><v>1</v></c><c r='XFD1'><v>2</v></c></row>")
    assert (row.cells, row.widest) == ({0: "1"}, 16_383)


@pytest.mark.parametrize(
    "rows",
    [
        "<row r='2'/><row r='2'/>",
        "<row r='0'/>",
        "<row r='-1'/>",
        "<row r='x'/>",
        "<row r='\uff11'/>",
        "<row r='1048577'/>",
        f"<row r='{'9' * 5000}'/>",
        "<row r='1'><c r='A1' t='s'><v>2</v></c></row>",
        "<row r='1'><c r='A1' t='s'><v>-1</v></c></row>",
        "<row r='1'><c r='A1' t='s'><v>1.5</v></c></row>",
        "<row r='1'><c r='1'/></row>",
        "<row r='1'><c r='ÄA1'/></row>",
        "<row r='1'><c r='XFE1'/></row>",
    ],
)
def test_what_no_spreadsheet_writes_is_refused(rows: str) -> None:
    with pytest.raises(FileRefusedError, match="已损坏"):
        read(rows)


@given(st.integers(1, 50))
def test_cutting_anywhere_gives_the_same_rows(piece: int) -> None:
    first = "<row r='1'><c r='A1' t='s'><v>1</v></c><c r='C1'><v>12345678</v></c></row>"
    rows = f"{first}<row r='4'><c r='B4' t='str'><v>月包</v></c></row>"
    assert read(rows, piece=piece) == read(rows, piece=10_000)
