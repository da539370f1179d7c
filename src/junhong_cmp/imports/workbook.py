"""The card rows of a workbook: which sheet has them, where its header is, and the rows behind it."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Final, Protocol

from junhong_cmp.imports.cells import RawRow
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.header import Columns, HeaderSearch, list_names
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.records import RecordFault
from junhong_cmp.imports.sheet_row import SheetRow
from junhong_cmp.imports.xls import XlsWorkbook
from junhong_cmp.imports.xlsx import XlsxWorkbook

_REFUSALS_SHOWN: Final = 3


class Workbook(Protocol):
    """What a format offers: its worksheets in their order, which of them are hidden, and their rows."""

    sheets: list[str]
    hidden: set[str]

    def rows(self, sheet: str) -> Iterator[RawRow]:
        """Yield the rows of ``sheet`` that have content."""


def open_workbook(
    file: IO[bytes], found: FileFormat, limits: ImportLimits, workbook_limits: WorkbookLimits
) -> Workbook:
    """Open a workbook; raises FileRefusedError when it is damaged, encrypted or hostile."""
    if found is FileFormat.XLSX:
        return XlsxWorkbook(file, limits, workbook_limits)
    return XlsWorkbook(file, limits)


class CardSheet:
    """A card sheet is the sheet of a workbook with the cards: the one named, or the first with a header.

    Hidden sheets count only when they are named.
    """

    def __init__(self, workbook: Workbook, name: str, limits: ImportLimits) -> None:
        self._workbook = workbook
        self._limits = limits
        self._columns = Columns({}, 0)
        self.name, self._rows = self._find(name)

    @property
    def ignored_columns(self) -> tuple[str, ...]:
        """The names of the columns that mean nothing to us."""
        return self._columns.ignored

    @property
    def other_sheets(self) -> list[str]:
        """The sheets that are not read."""
        return [sheet for sheet in self._workbook.sheets if sheet != self.name]

    def rows(self) -> Iterator[SheetRow]:
        """Yield the rows behind the header, once; raises FileRefusedError when the sheet is damaged."""
        for raw in self._rows:
            if any(map(str.strip, raw.cells.values())) or raw.kinds:
                yield self._shape(raw)

    def _find(self, name: str) -> tuple[str, Iterator[RawRow]]:
        sheets = self._candidates(name)
        refusals: list[str] = []
        for sheet in sheets:
            search = HeaderSearch()
            rows = self._workbook.rows(sheet)
            for raw in islice(rows, self._limits.preamble_lines):
                columns = search.try_row(raw.number, _as_list(raw))
                if columns is not None:
                    self._columns = columns
                    return sheet, rows
            refusals.append(str(search.refusal(f"工作表“{show(sheet)}”" if len(sheets) > 1 else "")))
        raise FileRefusedError("。".join(refusals[:_REFUSALS_SHOWN]))

    def _candidates(self, name: str) -> Sequence[str]:
        sheets = self._workbook.sheets
        if name:
            if name not in sheets:
                raise FileRefusedError(
                    f"没有名为“{show(name)}”的工作表；现有：{list_names([show(one) for one in sheets])}"
                )
            return [name]
        visible = [sheet for sheet in sheets if sheet not in self._workbook.hidden]
        if not visible:
            raise FileRefusedError("工作簿中没有可见的工作表")
        return visible

    def _shape(self, raw: RawRow) -> SheetRow:
        if raw.widest >= self._limits.columns:
            excerpt = "，".join(raw.cells.values())[: self._limits.cell_chars]
            return SheetRow(raw.number, raw.number, {}, fault=RecordFault.TOO_MANY_COLUMNS, excerpt=excerpt)
        cells, kinds, index = raw.cells, raw.kinds, self._columns.index
        fields = {field: cells.get(at, "") for field, at in index.items()}
        known_kinds = {field: kinds[at] for field, at in index.items() if at in kinds} if kinds else None
        surplus = raw.widest >= self._columns.width
        return SheetRow(raw.number, raw.number, fields, surplus, kinds=known_kinds or None)


def _as_list(raw: RawRow) -> list[str]:
    width = max(raw.cells, default=-1) + 1
    return [raw.cells.get(at, "") for at in range(width)]
