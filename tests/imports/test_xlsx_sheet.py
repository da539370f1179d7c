import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.cells import RawRow
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.xlsx_dates import DateCells
from junhong_cmp.imports.xlsx_plain import ROW_END
from junhong_cmp.imports.xlsx_sheet import read_sheet

STRINGS = ["零", "一"]


def read(rows: str, *, piece: int = 7) -> list[RawRow]:
    data = f"<worksheet><dimension ref='A1:XFD1048576'/><sheetData>{rows}</sheetData></worksheet>".encode()
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    limits, dates = ImportLimits(columns=5, cell_chars=10), DateCells({"1": "%Y-%m-%d"})
    return list(read_sheet(pieces, STRINGS, limits, dates))


def outcome(rows: str, *, piece: int) -> list[RawRow] | str:
    try:
        return read(rows, piece=piece)
    except FileRefusedError as error:
        return str(error)


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


CELLS = st.builds(
    "<c {}{}{}{}".format,
    st.sampled_from(['r="A1"', 'r="B1"', 'r="C1"', 'r="AB1"', 'r="F1"']),
    st.sampled_from(["", ' s="1"', ' s="2"']),
    st.sampled_from(["", ' t="s"', ' t="inlineStr"', ' t="str"', ' t="n"', ' t="e"', ' t="b"', ' t="new"']),
    st.sampled_from(["/>", "><f>A1</f></c>"])
    | st.sampled_from(["0", "1", "", " 12 ", "46000", "月包", "x" * 20, "a_x0041_", "a&amp;b", "\t"]).map(
        "><v>{}</v></c>".format
    )
    | st.sampled_from(["><is><t>月包</t></is></c>", "><is><t>1</t></is></c>", "><is><t></t></is></c>"]),
)
ROWS = st.lists(st.lists(CELLS, max_size=4).map("".join), max_size=6)


@given(ROWS, st.integers(1, 60))
def test_plain_rows_are_read_as_those_that_are_not(rows: list[str], piece: int) -> None:
    """A blank makes a row one that has to be read tag by tag."""

    def write(end: str) -> str:
        numbered = enumerate(rows, 1)
        return "".join(f'<row r="{number}" spans="1:5">{cells}{end}</row>' for number, cells in numbered)

    thorough = outcome(write(" "), piece=piece)
    assert outcome(write(""), piece=piece) == thorough
    assert outcome(write(""), piece=1_000_000) == thorough


PLAIN_ROW = '<row r="7"><c r="A7" t="str"><v>x</v></c><c r="B7" t="inlineStr"><is><t>y</t></is></c></row>'


@pytest.mark.parametrize(("opener", "closer"), [("<!-- x", "-->"), ("<?abc ", "?>")])
def test_behind_an_empty_row_as_much_as_an_end_tag_is_none(opener: str, closer: str) -> None:
    """The first bite ends with ``opener``, which is as long as the end tag of a row."""
    assert len(opener) == len(ROW_END)
    head = "<worksheet><row r='1'/>"
    first = head.replace(">", ">" + " " * (2 * 8192 - len(head) - len(opener)), 1) + opener
    pieces = [first.encode(), f"{PLAIN_ROW}{closer}</worksheet>".encode()]
    assert list(read_sheet(pieces, STRINGS, ImportLimits())) == []


def test_what_looks_like_rows_in_wide_characters_is_none() -> None:
    text = ROW_END + b'<row r="7"><c r="A7" t="str"><v>xy</v></c></row>'
    data = f"<worksheet><row r='1'/>{text.decode('utf-16-le')}</worksheet>".encode("utf-16")
    cut = data.index(ROW_END) + len(ROW_END)
    assert list(read_sheet([data[:cut], data[cut:]], STRINGS, ImportLimits())) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("<row r='1'></row>", "", [7]),
        ("<row r='1'></row><!-- </row>", " -->", []),
        ("<row r='1'/><!-- <row/>", " --><row r='8'/>", []),
        ("<row r='1'></row><![CDATA[</row>", "]]>", []),
        ("<row r='1'></row><?x </row>", "?>", []),
        ("<row r='1'><c r='A1'><is><rPh><row r='2'></row>", "</rPh></is></c></row>", [7, 7]),
    ],
)
@pytest.mark.parametrize("piece", [1, 1_000_000])
def test_a_row_is_no_row_everywhere(before: str, after: str, found: list[int], piece: int) -> None:
    rows = read(before + PLAIN_ROW + after, piece=piece)
    assert [row.number for row in rows] == found
    assert rows == read(before + PLAIN_ROW.replace("</row>", " </row>") + after, piece=piece)


@pytest.mark.parametrize(
    "row",
    [
        '<row r="2" r="2"><c r="A2"><v>1</v></c></row>',
        '<row r="2"><c r="A2"><v>\uffff</v></c></row>',
        '<row r="2"><c r="A2"><v>]]></v></c></row>',
        '<row r="2"><c r="XFE2"/></row>',
        '<row r="1"><c r="A1"><v>1</v></c></row>',
        '<row r="2"><c r="A2" t="s"><v>2</v></c></row>',
    ],
)
def test_a_plain_row_is_refused_for_the_same_faults(row: str) -> None:
    before = '<row r="1"></row>'
    refusal = outcome(before + row, piece=1)
    assert isinstance(refusal, str)
    assert refusal == outcome(before + row.replace("</row>", " </row>"), piece=1)


def test_plain_rows_of_another_encoding_are_read_in_theirs() -> None:
    row = '<row r="{0}"><c r="A{0}" t="str"><v>\u00c3\u00a9</v></c></row>'
    head = "<?xml version='1.0' encoding='{}'?><worksheet>"
    for encoding in ("iso-8859-1", "utf-8", "utf-16"):
        data = (head.format(encoding) + row.format(1) + row.format(2) + "</worksheet>").encode(encoding)
        texts = [one.cells[0] for one in read_sheet([data[:150], data[150:]], [], ImportLimits())]
        assert texts == ["\u00c3\u00a9"] * 2
