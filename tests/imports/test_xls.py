import io

import pytest
from tests.imports import workbooks

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.xls import XlsWorkbook


def open_xls(data: bytes) -> XlsWorkbook:
    return XlsWorkbook(io.BytesIO(data), ImportLimits(columns=10, cell_chars=20))


def test_sheets_rows_and_kinds() -> None:
    rows: list[list[workbooks.Cell]] = [
        [],
        [None, "ICCID", "卡"],
        [None, "89860400000000000015", {"number": "1064000000001"}],
        [],
        [None, {"number": "8.98604E+19"}, {"number": "29.9"}],
        [None, {"formula": '"8986"&"04"'}, {"boolean": "1"}],
        [None, "#N/A", "x" * 100],
        [*[None] * 12, "远"],
    ]
    opened = open_xls(workbooks.xls({"说明": [["x"]], "旧": [], "卡": rows}, hidden=["旧"]))
    assert (opened.sheets, opened.hidden) == (["说明", "旧", "卡"], {"旧"})
    got = list(opened.rows("卡"))
    assert [(row.number, dict(row.cells)) for row in got] == [
        (2, {1: "ICCID", 2: "卡"}),
        (3, {1: "89860400000000000015", 2: "1064000000001"}),
        (5, {1: "8.98604E+19", 2: "29.9"}),
        (6, {1: "", 2: "TRUE"}),
        (7, {1: "#N/A", 2: "x" * 21}),
        (8, {}),
    ]
    assert got[2].kinds == {1: CellKind.NUMBER, 2: CellKind.NUMBER}
    assert got[3].kinds == {1: CellKind.FORMULA, 2: CellKind.BOOLEAN}
    assert got[4].kinds == {1: CellKind.ERROR}
    assert got[5].widest == 12
    assert list(opened.rows("旧")) == []


def test_an_encrypted_workbook_is_named_as_such() -> None:
    with pytest.raises(FileRefusedError, match="密码"):
        open_xls(workbooks.encrypted())


def test_another_document_of_the_time_is_no_workbook() -> None:
    data = workbooks.xls({"卡": [["x"]]})
    name, other = "Workbook".encode("utf-16-le"), "WordDocu".encode("utf-16-le")
    with pytest.raises(FileRefusedError, match="Word"):
        open_xls(data.replace(name, other))


def test_a_damaged_content_is_refused() -> None:
    data = bytearray(workbooks.xls({"卡": [["ICCID"], *[[f"{n}"] for n in range(500)]]}))
    data[512:1024] = b"\xff" * 512
    with pytest.raises(FileRefusedError, match="已损坏"):
        open_xls(bytes(data))
