"""A list of cards as a workbook, row by row in flat memory."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from junhong_cmp.exports.columns import TITLES, Cell

SHEET_ROWS: Final = 1_048_576
"""Rows a sheet can have, the one with the titles included."""
_WIDTH: Final = 22


class XlsxCards:
    """A workbook of cards takes rows as they come and begins another sheet when one is full.

    Each row goes to a temporary file at once. Text is written as text, whatever it looks like: no cell
    is a formula, a link or a rounded number.
    """

    def __init__(self, path: Path, *, sheet_rows: int = SHEET_ROWS) -> None:
        # The folder of the file has room for it, which the system's folder for temporary files may not.
        self._book = Workbook(str(path), {"constant_memory": True, "tmpdir": str(path.parent)})
        self._text = self._book.add_format({"num_format": "@"})
        self._bold = self._book.add_format({"bold": True})
        self._sheet_rows = sheet_rows
        self._sheets = 0
        self._sheet, self._row = self._begin_sheet()

    def write(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Append rows."""
        for cells in rows:
            if self._row == self._sheet_rows:
                self._sheet, self._row = self._begin_sheet()
            self._write_row(cells)
            self._row += 1

    def close(self) -> None:
        """Put the workbook together; raises OSError as writing does."""
        try:
            self._book.close()
        except FileCreateError as error:
            if error.args and isinstance(error.args[0], OSError):
                raise error.args[0] from error
            raise

    def discard(self) -> None:
        """Let go of a workbook that is not to be put together, or has been."""
        for sheet in self._book.worksheets():
            with suppress(OSError):  # a full disk, which writing has told of already
                sheet._opt_close()  # noqa: SLF001 - its temporary file has no other way to be closed

    def _write_row(self, cells: Sequence[Cell]) -> None:
        sheet, row = self._sheet, self._row
        for column, cell in enumerate(cells):
            if isinstance(cell, int):
                sheet.write_number(row, column, cell)
            elif cell:
                sheet.write_string(row, column, cell, self._text)

    def _begin_sheet(self) -> tuple[Worksheet, int]:
        self._sheets += 1
        sheet = self._book.add_worksheet("卡清单" if self._sheets == 1 else f"卡清单{self._sheets}")
        sheet.set_column(0, len(TITLES) - 1, _WIDTH)
        sheet.freeze_panes(1, 1)
        for column, title in enumerate(TITLES):
            sheet.write_string(0, column, title, self._bold)
        return sheet, 1
