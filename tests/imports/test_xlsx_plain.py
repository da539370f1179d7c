from datetime import date
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xlsxwriter import Workbook

from junhong_cmp.imports.xlsx_plain import (
    ROW_END,
    STRING_END,
    cut_behind,
    find_plain_rows,
    find_plain_strings,
)

TEXT = '<c r="A2" s="1" t="inlineStr"><is><t>月包</t></is></c>'
NUMBER = '<c r="AB2"><v>12</v></c>'


def test_plain_rows_are_given_out_in_parts() -> None:
    rows = f'<row r="2" spans="1:5">{TEXT}{NUMBER}<c r="AC2" s="3"/></row><row r="3" ht="12.8"></row>'
    assert find_plain_rows(rows.encode()) == [
        ("", "", "", "", "2"),
        ("A", "1", "inlineStr", "月包", ""),
        ("AB", "", "", "12", ""),
        ("AC", "3", "", "", ""),
        ("", "", "", "", ""),
        ("", "", "", "", "3"),
        ("", "", "", "", ""),
    ]


@pytest.mark.parametrize("constant_memory", [True, False])
def test_what_spreadsheet_programs_write_is_plain(*, constant_memory: bool, tmp_path: Path) -> None:
    path = tmp_path / "cards.xlsx"
    with Workbook(path, {"constant_memory": constant_memory}) as book:
        sheet, dates = book.add_worksheet(), book.add_format({"num_format": "yyyy-mm-dd"})
        for row in range(200):
            sheet.write_string(row, 0, f"8986040000000000{row:04d}")
            sheet.write_string(row, 1, "30M/月")
            sheet.write_number(row, 2, 1064000000000 + row)
            sheet.write_datetime(row, 3, date(2026, 1, 31), dates)
            sheet.write_blank(row, 4, None, dates)
    part = ZipFile(path).read
    if not constant_memory:
        *bites, _ = cut_behind(STRING_END, [part("xl/sharedStrings.xml").partition(STRING_END)[2]])
        assert bites
        assert all(find_plain_strings(bite) for bite in bites)
    data = part("xl/worksheets/sheet1.xml")
    first, *bites, _ = cut_behind(ROW_END, [data])
    assert first.count(ROW_END) + sum(bite.count(ROW_END) for bite in bites) == 200
    assert len(bites) > 2
    assert all(find_plain_rows(bite) for bite in bites)


@pytest.mark.parametrize(
    "bite",
    [
        "",
        TEXT,
        f'<row r="2">{TEXT}',
        f'<row r="2">{TEXT}</row> ',
        f'<row r="2"> {TEXT}</row>',
        f'<row r="2"/>{TEXT}</row>',
        f'<row r="2"></row></sheetData><row r="3">{TEXT}</row>',
        '<row r="2"><c r="A2"><f>A1</f><v>1</v></c></row>',
        '<row r="2"><c r="A2" t="inlineStr"><is><r><t>x</t></r></is></c></row>',
        '<row r="2"><c r="A2" t="str"><v>a&amp;b</v></c></row>',
        '<row r="2"><c r="A2" t="str"><v>a\r</v></c></row>',
        '<row r="2"><c t="str"><v>a</v></c></row>',
        "<row r='2'></row>",
        "<row></row>",
        "<!-- </row>",
    ],
)
def test_what_is_more_or_less_than_plain_rows_is_none(bite: str) -> None:
    assert find_plain_rows(bite.encode()) is None


def test_plain_strings_are_given_out() -> None:
    strings = '<si><t>月包</t></si><si><t xml:space="preserve"> x </t></si><si><t></t></si>'
    assert find_plain_strings(strings.encode()) == ["月包", " x ", ""]


@pytest.mark.parametrize(
    "bite",
    ["", "<si>", "<si/>", "<si></si>", "<si><t>a&amp;b</t></si>", "<si><t>x</t><t>y</t></si>", "<!-- </si>"],
)
def test_what_is_more_or_less_than_plain_strings_is_none(bite: str) -> None:
    assert find_plain_strings(bite.encode()) is None


def test_bytes_that_are_no_text_are_none() -> None:
    assert find_plain_strings(b"<si><t>\xff</t></si>") is None
    assert find_plain_rows(b'<row r="2"><c r="A2"><v>\xff</v></c></row>') is None


@given(st.lists(st.sampled_from([b"<row>", ROW_END, b"<", b"/row>", b"x" * 5000])), st.integers(1, 9000))
def test_bites_end_behind_rows_and_are_the_same_bytes(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    bites = list(cut_behind(ROW_END, (data[start : start + size] for start in range(0, len(data), size))))
    assert b"".join(bites) == data
    assert all(len(bite) <= 3 * 8192 for bite in bites)
    assert all(bite.endswith(ROW_END) or len(bite) > 8192 for bite, _ in pairwise(bites))
