"""A list of cards as CSV that a spreadsheet opens without spoiling a number."""

from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final

from junhong_cmp.exports.columns import TITLES, Cell
from junhong_cmp.imports.defusing import as_cell

_LINE_END: Final = "\r\n"


class CsvCards:
    """A CSV of cards is written to a stream as the rows come: UTF-8 with byte order mark, RFC 4180."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        # Written with the first rows: an export that finds it can't begin has said nothing.
        self._head = (",".join(map(as_cell, TITLES)) + _LINE_END).encode("utf-8-sig")

    def write(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Append rows; formulas are defused, digits that are no quantity stay text."""
        self._out.write(self._head + "".join(map(_line, rows)).encode())
        self._head = b""

    def close(self) -> None:
        """Have everything written out, the titles too if there were no rows."""
        self._out.write(self._head)
        self._out.flush()


def _line(cells: Sequence[Cell]) -> str:
    return ",".join(map(_cell, cells)) + _LINE_END


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return str(cell) if isinstance(cell, int) else as_cell(cell)
