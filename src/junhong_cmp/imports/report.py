"""The result file: what became of each row, safe to open in a spreadsheet."""

import asyncio
import codecs
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from junhong_cmp.db.pool import Pool
from junhong_cmp.imports.defusing import as_cell
from junhong_cmp.imports.model import RowStatus
from junhong_cmp.imports.row_store import stream_rows
from junhong_cmp.imports.temporary import no_room

_HEADER: Final = ("行号", "结果", "ICCID", "原因", "提醒")
_STATUS_CELLS: Final = {
    RowStatus.IMPORTED: as_cell("已导入"),
    RowStatus.SKIPPED: as_cell("已跳过"),
    RowStatus.REJECTED: as_cell("已拒绝"),
}
_EMPTY: Final = as_cell("")
_WRITTEN_CHARS: Final = 64 * 1024
"""How much is gathered before a thread is asked to write it."""


def format_rows(rows: Iterable[Iterable[Any]]) -> str:
    """Return the CSV lines of rows as they are streamed; the line number alone is a number."""
    lines = [
        f"{line_no},{_STATUS_CELLS[status]},{as_cell(value)},"
        f"{as_cell(reason) if reason else _EMPTY},"
        f"{as_cell('；'.join(warnings)) if warnings else _EMPTY}\r\n"
        for line_no, status, value, reason, warnings in rows
    ]
    return "".join(lines)


async def write_report(pool: Pool, import_id: int, path: Path) -> None:
    """Write the result file of an import: UTF-8 with byte order mark, some pages of rows in memory at a time.

    Raises:
        StorageUnavailableError: the disk can't take it.

    """
    text = codecs.BOM_UTF8.decode() + ",".join(map(as_cell, _HEADER)) + "\r\n"
    async with aclosing(stream_rows(pool, import_id)) as pages:
        async for rows in pages:
            text += format_rows(rows)
            if len(text) >= _WRITTEN_CHARS:
                await asyncio.to_thread(_append, path, text)
                text = ""
    await asyncio.to_thread(_append, path, text)


def _append(path: Path, text: str) -> None:
    try:
        with path.open("ab") as out:
            out.write(text.encode())
    except OSError as error:
        raise no_room(error) from error
