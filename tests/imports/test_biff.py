import struct

import pytest
from tests.imports import workbooks

from junhong_cmp.imports.biff import formula_cells
from junhong_cmp.imports.compound_file import CompoundFile
from junhong_cmp.imports.errors import FileRefusedError


def record(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(body)) + body


BEGIN, END = record(0x0809, bytes(16)), record(0x000A)


def book(sheet: bytes) -> bytes:
    start = len(BEGIN) + 4 + 4 + len(END)
    return BEGIN + record(0x0085, struct.pack("<I", start)) + END + sheet


def test_formulas_are_found_by_sheet() -> None:
    data = workbooks.xls(
        {"一": [["x"]], "二": [["x", {"formula": "1+1"}], [None, None, {"formula": "A1"}]], "三": []}
    )
    assert formula_cells(CompoundFile(data).read("Workbook")) == [set(), {(0, 1), (1, 2)}, set()]


def test_a_chart_within_a_sheet_neither_ends_it_nor_counts() -> None:
    formula = record(0x0006, struct.pack("<HH", 7, 2))
    chart = BEGIN + record(0x0006, struct.pack("<HH", 1, 1)) + END
    assert formula_cells(book(BEGIN + chart + formula + END + formula)) == [{(7, 2)}]


def test_a_password_is_named() -> None:
    with pytest.raises(FileRefusedError, match="密码"):
        formula_cells(BEGIN + record(0x002F) + END)


@pytest.mark.parametrize("stream", [BEGIN + record(0x0085, b"x"), book(BEGIN + record(0x0006))])
def test_records_cut_short_are_damage(stream: bytes) -> None:
    with pytest.raises(FileRefusedError, match="已损坏"):
        formula_cells(stream)


def test_a_sheet_beyond_the_end_has_no_formulas() -> None:
    assert formula_cells(BEGIN + record(0x0085, struct.pack("<I", 99_999)) + END) == [set()]
