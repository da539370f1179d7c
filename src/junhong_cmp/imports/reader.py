"""The reader of text files: bytes in, rows with their line numbers out, in bounded memory."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.header import Columns, Field, HeaderSearch
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.lines import Line, LineSplitter
from junhong_cmp.imports.records import Record, RecordAssembler
from junhong_cmp.imports.sheet_row import SheetRow

DELIMITERS: Final = (",", "\t", ";", "|")


class CardFileReader:
    """A card file reader finds the header and gives out the rows behind it, as the bytes come in.

    The pieces it reads may be of any size; beside the one at hand it holds at most one record.
    """

    def __init__(self, encoding: str, limits: ImportLimits | None = None) -> None:
        self._limits = limits or ImportLimits()
        self._splitter = LineSplitter(encoding, max_chars=self._limits.line_chars)
        self._assemblers = [RecordAssembler(delimiter, self._limits) for delimiter in DELIMITERS]
        self._search = HeaderSearch()
        self._columns: Columns | None = None
        self._lines_before_header = 0

    @property
    def ignored_columns(self) -> tuple[str, ...]:
        """The names of the columns that mean nothing to us, once the header was found."""
        return () if self._columns is None else self._columns.ignored

    def rows(self, pieces: Iterable[bytes]) -> Iterator[SheetRow]:
        """Yield the rows of the file whose bytes are ``pieces``, asking for a piece only once it is needed.

        Raises:
            FileRefusedError: no ICCID column, two of them, or bytes that are no text.

        """
        for piece in pieces:
            yield from self._read(self._splitter.feed(piece))
        yield from self._read(self._splitter.feed(b"", final=True))
        if self._columns is None:
            yield from self._settle_header([(one, one.finish()) for one in self._assemblers])
        if self._columns is None:
            raise self._search.refusal()
        yield from self._shape(self._assemblers[0].finish())

    def _read(self, lines: Iterable[Line]) -> Iterator[SheetRow]:
        for line in lines:
            if self._columns is None:
                yield from self._look_for_header(line)
            elif (cells := self._assemblers[0].cut_plain(line)) is None:
                yield from self._shape(self._assemblers[0].push(line))
            elif any(map(str.strip, cells)):
                yield _row(line.number, line.number, cells, self._columns)

    def _look_for_header(self, line: Line) -> list[SheetRow]:
        if "\0" in line.text:
            raise FileRefusedError("文件含有空字符（NUL），不是文本文件；请提供 CSV 或 Excel 文件")
        if not line.text.strip():
            return []
        self._lines_before_header += 1
        if self._lines_before_header > self._limits.preamble_lines:
            raise self._search.refusal(f"前 {self._limits.preamble_lines} 行中")
        return self._settle_header([(one, one.push(line)) for one in self._assemblers])

    def _settle_header(self, offers: list[tuple[RecordAssembler, list[Record]]]) -> list[SheetRow]:
        """Take the delimiter under which a header appears, the one with most known columns if several.

        Returns the rows that were already read behind the header.
        """
        for record in chain.from_iterable(records for _, records in offers):
            if record.fault is not None:
                self._search.note_fault(record.line, record.fault)
        found = [
            (assembler, columns, records[at + 1 :])
            for assembler, records in offers
            for at, record in enumerate(records)
            if record.fault is None
            and (columns := self._search.try_row(record.line, record.cells)) is not None
        ]
        if not found:
            return []
        assembler, columns, behind = max(found, key=lambda offer: (len(offer[1].index), offer[1].width))
        assembler.iccid_column = columns.index[Field.ICCID]
        self._assemblers, self._columns = [assembler], columns
        return self._shape(behind)

    def _shape(self, records: list[Record]) -> list[SheetRow]:
        return [row for record in records if (row := self._shape_one(record)) is not None]

    def _shape_one(self, record: Record) -> SheetRow | None:
        if record.fault is not None or self._columns is None:
            excerpt = "".join(record.cells)[: self._limits.cell_chars]
            return SheetRow(record.line, record.last_line, {}, fault=record.fault, excerpt=excerpt)
        if not any(map(str.strip, record.cells)):
            return None
        return _row(record.line, record.last_line, record.cells, self._columns)


def _row(line: int, last_line: int, cells: list[str], columns: Columns) -> SheetRow:
    if len(cells) == columns.width:
        return SheetRow(line, last_line, {field: cells[at] for field, at in columns.index.items()})
    fields = {field: cells[at] for field, at in columns.index.items() if at < len(cells)}
    surplus = any(map(str.strip, cells[columns.width :]))
    return SheetRow(line, last_line, fields, surplus)
