"""The rows of one XLSX worksheet, streamed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from junhong_cmp.imports.cells import RawRow, unescape
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.sheet_row import CellKind
from junhong_cmp.imports.xlsx_dates import DateCells
from junhong_cmp.imports.xlsx_plain import ROW_END, cut_behind, find_plain_rows
from junhong_cmp.imports.xml_stream import XmlStream

_LAST_ROW: Final = 1_048_576
_DIGITS: Final = "0123456789"
_KINDS: Final = {"n": CellKind.NUMBER, "b": CellKind.BOOLEAN, "e": CellKind.ERROR, "d": CellKind.DATE}
_TEXT_TYPES: Final = {"str", "inlineStr"}


def read_sheet(
    pieces: Iterable[bytes], strings: Sequence[str], limits: ImportLimits, dates: DateCells | None = None
) -> Iterator[RawRow]:
    """Yield the rows that have content, in their order; the declared size of the sheet counts for nothing.

    Raises:
        FileRefusedError: the part is damaged, or its rows are out of order.

    """
    parser = _SheetParser(strings, limits, dates or DateCells({}))
    for _ in parser.stream.run(cut_behind(ROW_END, pieces), parser.take_plain):
        yield from parser.rows
        parser.rows.clear()


class _SheetParser:
    """A sheet parser turns elements into rows; the digits of numbers stay as they are written."""

    def __init__(self, strings: Sequence[str], limits: ImportLimits, dates: DateCells) -> None:
        self.rows: list[RawRow] = []
        self.stream = XmlStream(self._start, self._end, max_text=limits.cell_chars)
        self._strings = strings
        self._dates = dates
        self._columns = limits.columns
        self._cut = limits.cell_chars + 1
        self._column_of: dict[str, int] = {}
        self._number = 0
        self._cells: dict[int, str] = {}
        self._kinds: dict[int, CellKind] = {}
        self._widest = -1
        self._column = -1
        self._type = "n"
        self._style: str | None = None
        self._value = ""
        self._formula = False
        self._phonetic = False
        self._row_end = -1

    def take_plain(self, bite: bytes) -> bool:
        """Take the rows of ``bite`` if there is nothing else in it, and it starts right behind a row."""
        stream = self.stream
        if self._phonetic or not (stream.in_utf8 and stream.is_behind(ROW_END, self._row_end)):
            return False  # the bite may even be the middle of a comment
        parts = find_plain_rows(bite)
        if parts is None:
            return False
        for letters, style, kind, text, row in parts:
            if letters:
                self._column = self._find_column(letters)
                self._type, self._style, self._value, self._formula = kind or "n", style or None, text, False
                self._end_cell()
            elif row:
                self._begin_row(row)
            else:
                self._end_row()
        self._row_end = stream.parsed + len(bite) - len(ROW_END)
        return True

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "c":
            reference = attributes.get("r")
            self._column = (
                self._column + 1 if reference is None else self._find_column(reference.rstrip(_DIGITS))
            )
            self._type = attributes.get("t", "n")
            self._style = attributes.get("s")
            self._value, self._formula = "", False
        elif tag in {"v", "t"}:
            self.stream.texts.clear()
        elif tag == "row":
            self._begin_row(attributes.get("r"))
        elif tag == "f":
            self._formula = True
        elif tag == "rPh":
            self._phonetic = True

    def _end(self, tag: str) -> None:
        if tag == "v":
            self._value = "".join(self.stream.texts)
        elif tag == "c":
            self._end_cell()
        elif tag == "row":
            self._end_row()
            self._row_end = self.stream.position
        elif tag == "t":
            if not self._phonetic and len(self._value) < self._cut:
                self._value += "".join(self.stream.texts)
        elif tag == "rPh":
            self._phonetic = False

    def _begin_row(self, reference: str | None) -> None:
        number = self._number + 1 if reference is None else _whole(reference)
        if not self._number < number <= _LAST_ROW:
            raise FileRefusedError(f"工作簿已损坏：第 {self._number} 行之后是第 {number} 行")
        self._number, self._column, self._widest = number, -1, -1
        self._cells, self._kinds = {}, {}

    def _end_row(self) -> None:
        if self._cells or self._widest >= 0:
            self.rows.append(RawRow(self._number, self._cells, self._kinds, self._widest))

    def _end_cell(self) -> None:
        text, kind = self._value, None
        if self._type == "s":
            text = self._shared(text) if text else ""
        elif self._type in _TEXT_TYPES:
            text = unescape(text[: self._cut])
        else:
            text, kind = text[: self._cut].strip(), _KINDS.get(self._type, CellKind.NUMBER)
            if self._type == "n" and (date := self._dates.text_of(self._style, text)) is not None:
                text, kind = date, CellKind.DATE
        if self._formula:
            kind = CellKind.FORMULA
        if not text and not self._formula:
            return
        self._widest = max(self._widest, self._column)
        if self._column < self._columns:
            self._cells[self._column] = text
            if kind is not None:
                self._kinds[self._column] = kind

    def _shared(self, index: str) -> str:
        at = _whole(index)
        if at >= len(self._strings):
            raise FileRefusedError(f"工作簿已损坏：第 {self._number} 行引用了不存在的字符串")
        return self._strings[at]

    def _find_column(self, letters: str) -> int:
        column = self._column_of.get(letters)
        if column is None:
            column = self._column_of[letters] = _column_index(letters)
        return column


def _whole(text: str) -> int:
    """Return a number of plain digits; ``int`` alone takes more than workbooks may write."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_LAST_ROW)) + 2:
        raise FileRefusedError("工作簿已损坏：行号或字符串编号不是数字")
    return int(text)


def _column_index(letters: str) -> int:
    index = 0
    for letter in letters[:4].upper():
        index = index * 26 + ord(letter) - ord("A") + 1
    if not 0 < index <= 16_384 or not (letters.isascii() and letters.isalpha()):  # noqa: PLR2004 - XFD
        raise FileRefusedError("工作簿已损坏：单元格地址无效")
    return index - 1
