"""The result file: what became of each row, safe to open in a spreadsheet."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from junhong_cmp.db.pool import Pool
from junhong_cmp.imports.defusing import as_cell
from junhong_cmp.imports.model import RowResult, RowStatus
from junhong_cmp.imports.row_store import stream_rows
from junhong_cmp.imports.temporary import no_room

_HEADER: Final = ("行号", "结果", "ICCID", "原因", "提醒")
_STATUS_NAMES: Final = {
    RowStatus.IMPORTED: "已导入",
    RowStatus.SKIPPED: "已跳过",
    RowStatus.REJECTED: "已拒绝",
}


def format_row(row: RowResult) -> str:
    """Return the CSV line of a row's outcome; the line number alone is a number."""
    cells = (row.value, row.reason or "", "；".join(row.warnings))
    return f'{row.line_no},"{_STATUS_NAMES[row.status]}",{",".join(map(as_cell, cells))}\r\n'


async def write_report(pool: Pool, import_id: int, path: Path) -> None:
    """Write the result file of an import: UTF-8 with byte order mark, a page of rows in memory at a time.

    Raises:
        StorageUnavailableError: the disk can't take it.

    """
    await asyncio.to_thread(_append, path, [",".join(map(as_cell, _HEADER)) + "\r\n"], encoding="utf-8-sig")
    async with aclosing(stream_rows(pool, import_id)) as pages:
        async for rows in pages:
            await asyncio.to_thread(_append, path, map(format_row, rows))


def _append(path: Path, lines: Iterable[str], encoding: str = "utf-8") -> None:
    try:
        with path.open("a", encoding=encoding, newline="") as out:
            out.writelines(lines)
    except OSError as error:
        raise no_room(error) from error
