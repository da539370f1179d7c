import io
from datetime import datetime
from typing import Any

import pytest
from tests.imports import workbooks
from xlsxwriter import Workbook

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.xlsx import XlsxWorkbook
from junhong_cmp.imports.xlsx_dates import DateCells, read_date_styles

STYLES = (
    '<styleSheet><numFmts><numFmt numFmtId="176" formatCode="{code}"/></numFmts><cellStyleXfs>'
    '<xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="176"/></cellXfs></styleSheet>'
)


def cells_of(data: bytes) -> list[tuple[str, CellKind | None]]:
    book = XlsxWorkbook(io.BytesIO(data), ImportLimits(), WorkbookLimits())
    (row,) = book.rows(book.sheets[0])
    return [(text, row.kinds.get(at)) for at, text in row.cells.items()]


def written(formats: list[str], moment: datetime, **options: Any) -> bytes:
    out = io.BytesIO()
    book = Workbook(out, options)
    sheet = book.add_worksheet()
    for column, code in enumerate(formats):
        sheet.write_datetime(0, column, moment, book.add_format({"num_format": code}))
    book.close()
    return out.getvalue()


@pytest.mark.parametrize("since_1904", [False, True])
def test_dates_are_read_as_they_are_shown(*, since_1904: bool) -> None:
    formats = ["yyyy-mm-dd", "yyyy/m", 'yyyy"年"m"月"d"日"', "[$-804]yyyy\\-mm;@", "m/d/yy h:mm"]
    data = written(formats, datetime(2026, 1, 5), date_1904=since_1904)  # noqa: DTZ001 - as in a sheet
    assert [text for text, _ in cells_of(data)] == [
        "2026-01-05",
        "2026-01",
        "2026-01-05",
        "2026-01",
        "2026-01-05",
    ]
    assert {kind for _, kind in cells_of(data)} == {CellKind.DATE}


def test_a_time_of_day_is_shown_with_its_date() -> None:
    data = written(["yyyy-mm-dd hh:mm"], datetime(2026, 1, 5, 23, 59, 59))  # noqa: DTZ001 - as above
    assert cells_of(data) == [("2026-01-05 23:59:59", CellKind.DATE)]


@pytest.mark.parametrize(
    "code", ["General", "0.00", "h:mm:ss", "[h]:mm", '0"day"', "#,##0_);[Red]", "0.0E+00", "@"]
)
def test_other_formats_show_numbers(code: str) -> None:
    assert read_date_styles([STYLES.format(code=code.replace('"', "&quot;")).encode()]) == {}


def test_styles_are_counted_among_those_of_cells_alone() -> None:
    assert read_date_styles([STYLES.format(code="yyyy/mm/dd").encode()]) == {"1": "%Y-%m-%d"}


@pytest.mark.parametrize("number", ["0", "-1", "2958466", "1E+300", "nan", "inf", "1064000000001", "x", ""])
def test_what_is_no_day_stays_a_number(number: str) -> None:
    dates = DateCells({"1": "%Y-%m-%d"})
    assert dates.text_of("1", number) is None
    assert dates.text_of("1", "46023") == "2026-01-01"
    assert dates.text_of("2", "46023") is None
    assert dates.text_of(None, "46023") is None


@pytest.mark.parametrize("last", ["2958465", "2958465.9999999"])
@pytest.mark.parametrize("since_1904", [False, True])
def test_the_last_days_there_are_are_no_crash(last: str, *, since_1904: bool) -> None:
    DateCells({"1": "%Y-%m-%d"}, since_1904=since_1904).text_of("1", last)


def test_damaged_styles_are_refused() -> None:
    data = workbooks.xlsx({"卡": [["ICCID"]]})
    assert cells_of(data) == [("ICCID", None)]
    with pytest.raises(FileRefusedError, match="XML"):
        read_date_styles([b"<styleSheet><cellXfs>"])
