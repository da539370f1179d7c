"""XLS workbooks (Excel 97-2003): values by calamine, formulas by their records."""

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import IO, Final

from python_calamine import (
    CalamineError,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from junhong_cmp.imports.biff import formula_cells
from junhong_cmp.imports.cells import RawRow
from junhong_cmp.imports.compound_file import CompoundFile
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.limits import ImportLimits
from junhong_cmp.imports.sheet_row import CellKind

_EXACT: Final = 10**15
_ERRORS: Final = {"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!"}


class XlsWorkbook:
    """An XLS workbook lists its sheets and gives out their rows; it is held whole."""

    def __init__(self, file: IO[bytes], limits: ImportLimits) -> None:
        data = file.read()
        container = CompoundFile(data)
        if "EncryptedPackage" in container:
            raise FileRefusedError("文件已加密（设有密码），请取消密码后再导入")
        stream = next((name for name in ("Workbook", "Book") if name in container), None)
        if stream is None:
            raise FileRefusedError("不是 Excel 文件（可能是 Word 等旧版文档），请提供 CSV 或 Excel 文件")
        self._columns = limits.columns
        self._cut = limits.cell_chars + 1
        self._formulas = formula_cells(container.read(stream))
        try:
            self._book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        except PasswordError as error:
            raise FileRefusedError("文件已加密（设有密码），请取消密码后再导入") from error
        except CalamineError as error:
            raise FileRefusedError(_DAMAGED) from error
        metadata = [one for one in self._book.sheets_metadata if one.typ is SheetTypeEnum.WorkSheet]
        self.sheets = [one.name for one in metadata]
        self.hidden = {one.name for one in metadata if one.visible is not SheetVisibleEnum.Visible}

    def rows(self, sheet: str) -> Iterator[RawRow]:
        """Yield the rows of a sheet that have content; raises FileRefusedError for a damaged one."""
        at = self._book.sheet_names.index(sheet)
        formulas: defaultdict[int, set[int]] = defaultdict(set)
        for row, column in self._formulas[at] if at < len(self._formulas) else ():
            formulas[row].add(column)
        try:
            table = self._book.get_sheet_by_index(at)
        except CalamineError as error:
            raise FileRefusedError(_DAMAGED) from error
        first_column = 0 if table.start is None else table.start[1]
        for number, values in enumerate(table.iter_rows()):
            row_cells = {first_column + at: value for at, value in enumerate(values) if value != ""}
            if row_cells or formulas[number]:
                yield self._raw_row(number + 1, row_cells, formulas[number])

    def _raw_row(self, number: int, values: Mapping[int, object], formulas: set[int]) -> RawRow:
        cells: dict[int, str] = dict.fromkeys((at for at in formulas if at < self._columns), "")
        kinds: dict[int, CellKind] = {}
        for column, value in values.items():
            if column < self._columns:
                text, kind = _read_value(value)
                cells[column] = text[: self._cut]
                if kind is not None:
                    kinds[column] = kind
        kinds |= dict.fromkeys(cells.keys() & formulas, CellKind.FORMULA)
        return RawRow(number, cells, kinds, max(values.keys() | formulas))


_DAMAGED: Final = "工作簿已损坏：内容不完整，请重新导出或重新上传"


def _read_value(value: object) -> tuple[str, CellKind | None]:
    """Return a value's text; a number is written in full only as far as it is exact."""
    if isinstance(value, str):
        return value, CellKind.ERROR if value in _ERRORS else None
    if isinstance(value, bool):
        return str(value).upper(), CellKind.BOOLEAN
    if isinstance(value, int):
        return str(value), CellKind.NUMBER
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < _EXACT
        return (str(int(value)) if whole else repr(value).upper()), CellKind.NUMBER
    return str(value), CellKind.DATE
