"""Lines to records: delimiters, quotes, and quoted line breaks, with every fault kept to its own row."""

import csv
import re
from collections import deque
from enum import StrEnum
from typing import Final, NamedTuple

from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.lines import Line

_LOOKS_LIKE_ICCID: Final = re.compile(r'[\s"\'=]*[0-9A-Fa-f]{18,22}[\s"]*')


class RecordFault(StrEnum):
    """Why a record can't be cut into cells."""

    LINE_TOO_LONG = "行过长"
    TOO_MANY_COLUMNS = "列数过多"
    QUOTE_NOT_CLOSED = "引号未闭合"


class Record(NamedTuple):
    """One row of the file: the lines it covers and its cells, or its text and what is wrong with it."""

    line: int
    last_line: int
    cells: list[str]
    fault: RecordFault | None = None


class RecordAssembler:
    """A record assembler joins lines whose quoted field goes on, and cuts records into cells.

    A quote that is never closed would swallow the rows behind it. So the lines of an open quote are
    kept until it closes; when it does not within the caps, or a line it would swallow is plainly a
    row of its own, only the line with the quote is faulty and the others are read again on their own.
    """

    def __init__(self, delimiter: str, limits: ImportLimits) -> None:
        self.delimiter = delimiter
        self.iccid_column: int | None = None
        field = rf'(?:"[^"]*+(?:""[^"]*+)*+"|[^"{re.escape(delimiter)}]*+)'
        self._well_quoted = re.compile(rf"{field}(?:{re.escape(delimiter)}{field})*+")
        self._limits = limits
        self._open: list[Line] = []
        self._open_chars = 0

    def cut_plain(self, line: Line) -> list[str] | None:
        """Return the cells of a line that is plainly a record of its own, as nearly all are.

        None says that it may be something else: :meth:`push` it.
        """
        text = line.text
        if self._open or line.overlong or text.count(self.delimiter) >= self._limits.columns:
            return None
        if '"' not in text:
            return text.split(self.delimiter)
        return self._cut_quoted(text) if self._well_quoted.fullmatch(text) else None

    def push(self, line: Line) -> list[Record]:
        """Return the records that are complete with ``line``."""
        return self._settle(deque([line]))

    def finish(self) -> list[Record]:
        """Return the records of what is left at the end of the file."""
        records: list[Record] = []
        while self._open:
            lines: deque[Line] = deque()
            records.append(self._give_up(lines))
            records += self._settle(lines)
        return records

    def _settle(self, lines: deque[Line]) -> list[Record]:
        records: list[Record] = []
        while lines:
            line = lines.popleft()
            if self._open and (line.overlong or self._is_row_of_its_own(line)):
                lines.appendleft(line)
                records.append(self._give_up(lines))
            elif line.overlong:
                records.append(Record(line.number, line.number, [line.text], RecordFault.LINE_TOO_LONG))
            elif _leaves_quote_open(line.text, self.delimiter, inside=bool(self._open)):
                self._open.append(line)
                self._open_chars += len(line.text) + 1
                if self._open_chars > self._limits.line_chars or len(self._open) > self._limits.record_lines:
                    records.append(self._give_up(lines))
            else:
                records.append(self._cut([*self._open, line]))
                self._forget_open()
        return records

    def _give_up(self, lines: deque[Line]) -> Record:
        """Return the opening line as faulty and put the lines behind it back to be read again."""
        first, *others = self._open
        self._forget_open()
        lines.extendleft(reversed(others))
        return Record(first.number, first.number, [first.text], RecordFault.QUOTE_NOT_CLOSED)

    def _forget_open(self) -> None:
        self._open = []
        self._open_chars = 0

    def _is_row_of_its_own(self, line: Line) -> bool:
        if self.iccid_column is None:
            return False
        cells = line.text.split(self.delimiter, self.iccid_column + 1)
        return (
            len(cells) > self.iccid_column
            and _LOOKS_LIKE_ICCID.fullmatch(cells[self.iccid_column]) is not None
        )

    def _cut(self, lines: list[Line]) -> Record:
        first, last = lines[0].number, lines[-1].number
        text = lines[0].text if len(lines) == 1 else "\n".join(line.text for line in lines)
        if text.count(self.delimiter) >= self._limits.columns:
            return Record(first, last, [text], RecordFault.TOO_MANY_COLUMNS)
        if '"' not in text:
            return Record(first, last, text.split(self.delimiter))
        return Record(first, last, self._cut_quoted(text))

    def _cut_quoted(self, text: str) -> list[str]:
        return next(csv.reader((text,), delimiter=self.delimiter))


def _leaves_quote_open(text: str, delimiter: str, *, inside: bool) -> bool:
    """Return whether a quoted field is open at the end of ``text``; a quote opens only at a field's start."""
    if not inside and '"' not in text:
        return False
    position = 0
    while True:
        if not inside:
            inside = text.startswith('"', position)
            position += inside
        if inside:
            closing = text.find('"', position)
            if closing < 0:
                return True
            if text.startswith('"', closing + 1):
                position = closing + 2
                continue
            inside, position = False, closing + 1
        following = text.find(delimiter, position)
        if following < 0:
            return False
        position = following + len(delimiter)
