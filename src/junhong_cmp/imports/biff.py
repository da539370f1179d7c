"""What the records of an XLS workbook tell that readers of its values hide: formulas and encryption."""

import struct
from typing import Final

from junhong_cmp.imports.errors import FileRefusedError

_END: Final = 0x000A
_BOUND_SHEET: Final = 0x0085
_FILE_PASS: Final = 0x002F
_BEGIN: Final = {0x0809, 0x0409, 0x0209, 0x0009}
_FORMULA: Final = {0x0006, 0x0206, 0x0406}


def formula_cells(stream: bytes) -> list[set[tuple[int, int]]]:
    """Return, for each sheet of the workbook stream, the (row, column) of its formulas, from 0.

    Raises:
        FileRefusedError: the workbook is encrypted, or its records are damaged.

    """
    try:
        return [_formulas_of(stream, start) for start in _sheet_starts(stream)]
    except struct.error as error:
        raise FileRefusedError("工作簿已损坏：记录不完整，请重新导出或重新上传") from error


def _sheet_starts(stream: bytes) -> list[int]:
    starts: list[int] = []
    at = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        if kind == _FILE_PASS:
            raise FileRefusedError("文件已加密（设有密码），请取消密码后再导入")
        if kind == _BOUND_SHEET:
            starts += struct.unpack_from("<I", stream, at + 4)
        if kind == _END:
            break
        at += 4 + size
    return starts


def _formulas_of(stream: bytes, at: int) -> set[tuple[int, int]]:
    """Walk a sheet's records to its end; charts in it have a beginning and an end of their own."""
    cells: set[tuple[int, int]] = set()
    depth = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        if kind in _FORMULA and depth == 1:
            cells.add(struct.unpack_from("<HH", stream, at + 4))
        elif kind in _BEGIN:
            depth += 1
        elif kind == _END:
            depth -= 1
            if depth <= 0:
                break
        at += 4 + size
    return cells
