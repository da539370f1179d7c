"""Cards into a file: all of it or nothing, in flat memory."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

from junhong_cmp.db.pool import Pool
from junhong_cmp.errors import system_reason
from junhong_cmp.exports.columns import Cell, cells_of
from junhong_cmp.exports.csv_cards import CsvCards
from junhong_cmp.exports.errors import FileNotWrittenError, NobodyReadsError
from junhong_cmp.exports.selection import CardSelection, stream_cards
from junhong_cmp.exports.xlsx_cards import XlsxCards

T = TypeVar("T")

_TEMPORARY: Final = Path("临时目录")
"""How a complaint calls where a workbook for a pipe is put together."""


class ExportFormat(StrEnum):
    """The kinds of files a list of cards can be."""

    CSV = "csv"
    XLSX = "xlsx"


class _CardFile(Protocol):
    def write(self, rows: Sequence[Sequence[Cell]]) -> None: ...

    def close(self) -> None: ...


class CardExporter:
    """A card exporter writes selected cards to a file or a stream; times are those of its zone."""

    def __init__(self, pool: Pool, zone: ZoneInfo) -> None:
        self._pool = pool
        self._zone = zone

    async def to_file(self, selection: CardSelection, kind: ExportFormat, path: Path) -> int:
        """Write the cards to ``path`` and return how many; the file appears when it is complete.

        A link is followed. A device or a pipe is written to and never replaced.

        Raises:
            NothingFoundError: there is no such account.
            FileNotWrittenError: no room, no access, no such folder; nothing is left behind.

        """
        path = Path(await _written(path, lambda: os.path.realpath(path)))
        if await _written(path, lambda: path.exists() and not path.is_file()):
            async with _opened(path, path) as out:
                return await self.to_stream(selection, kind, out, path)
        async with _folder_beside(path) as folder:
            made = folder / path.name
            if kind is ExportFormat.XLSX:
                book = await _written(path, lambda: XlsxCards(made))
                try:
                    rows = await self._fill(selection, book, path)
                finally:
                    book.discard()
            else:
                async with _opened(made, path) as out:
                    rows = await self._fill(selection, await _written(path, lambda: CsvCards(out)), path)
            await _written(path, lambda: made.replace(path))
        return rows

    async def to_stream(
        self, selection: CardSelection, kind: ExportFormat, out: BinaryIO, path: Path | None = None
    ) -> int:
        """Write the cards to a stream and return how many; CSV goes out as the rows come.

        ``path`` is what a complaint names, None the standard output.

        Raises:
            NothingFoundError, FileNotWrittenError: as :meth:`to_file`.
            NobodyReadsError: the other end of the pipe was closed.

        """
        if kind is ExportFormat.CSV:
            return await self._fill(selection, await _written(path, lambda: CsvCards(out)), path)
        with await _written(_TEMPORARY, _temporary_folder) as folder:
            book = Path(folder) / "cards.xlsx"
            rows = await self.to_file(selection, kind, book)
            with book.open("rb") as made:
                await _written(path, lambda: shutil.copyfileobj(made, out))
                await _written(path, out.flush)
        return rows

    async def _fill(self, selection: CardSelection, file: _CardFile, path: Path | None) -> int:
        count = 0
        async with aclosing(stream_cards(self._pool, selection)) as pages:
            async for page in pages:
                rows = [cells_of(row, self._zone) for row in page]
                await _written(path, partial(file.write, rows))
                count += len(rows)
        await _written(path, file.close)
        return count


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="junhong-export-", ignore_cleanup_errors=True)


@asynccontextmanager
async def _opened(file: Path, path: Path) -> AsyncGenerator[BinaryIO, None]:
    """Open ``file`` to be written, ``path`` for complaints; who writes to it flushes it."""
    out = await _written(path, lambda: file.open("wb"))
    try:
        yield out
    finally:
        with suppress(OSError):  # what its buffer still holds found no room, which has been told
            out.close()


@asynccontextmanager
async def _folder_beside(path: Path) -> AsyncGenerator[Path, None]:
    """Make a private folder next to ``path``, where a finished file is only renamed, and remove it again."""
    folder = Path(await _written(path, lambda: tempfile.mkdtemp(prefix=".junhong-export-", dir=path.parent)))
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _written(path: Path | None, work: Callable[[], T]) -> T:
    """Do what writes in a thread; ``path`` is what a complaint names, None the standard output."""
    try:
        return await asyncio.to_thread(work)
    except BrokenPipeError as error:
        raise NobodyReadsError("没有人读取输出") from error
    except OSError as error:
        place = "标准输出" if path is None else os.fspath(path)
        raise FileNotWrittenError(f"导出文件无法写入 {place}：{system_reason(error)}") from error
