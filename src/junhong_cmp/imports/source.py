"""The file of an import: looked over once as a whole, then read and judged row by row."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import IO, NamedTuple, TypeAlias

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.errors import system_reason
from junhong_cmp.imports.chunk import Outcome
from junhong_cmp.imports.encoding import FileFacts, FileInspector
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.formats import FileFormat, extension_note
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.notes import column_notes
from junhong_cmp.imports.reader import CardFileReader
from junhong_cmp.imports.rows import check_row
from junhong_cmp.imports.sheet_row import SheetRow
from junhong_cmp.imports.workbook_frames import FrameKind, decode_rows
from junhong_cmp.imports.workbook_order import WorkbookOrder
from junhong_cmp.imports.workbook_process import start_workbook_process
from junhong_cmp.storage.errors import StorageUnavailableError
from junhong_cmp.storage.store import Storage


class Judged(NamedTuple):
    """One row's outcome as far as the file tells, and the last line that the row covers."""

    last_line: int
    outcome: Outcome


_Judge: TypeAlias = Callable[[Iterable[SheetRow]], list[Judged]]


class CardSource:
    """A card source streams the file of one import from storage, in bounded memory.

    Text is decoded and judged in a thread, piece by piece; a workbook is parsed by a process of its own
    (docs/adr/0004). Closing :meth:`outcomes` ends whatever is at work.
    """

    def __init__(
        self,
        storage: Storage,
        task: ImportTask,
        *,
        limits: ImportLimits | None = None,
        workbook_limits: WorkbookLimits | None = None,
    ) -> None:
        self._storage = storage
        self._task = task
        self._limits = limits or ImportLimits()
        self._workbook_limits = workbook_limits or WorkbookLimits()
        self._facts: FileFacts | None = None
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell the operator about the file as a whole; complete with the first outcomes."""
        name = extension_note(self._task.file_name, self._facts.format) if self._facts else None
        return (*([name] if name else []), *self._notes)

    async def inspect(self, checkpoint: Callable[[], None]) -> FileFacts:
        """Read the whole file once and return its facts; ``checkpoint`` may raise to end that early.

        Raises:
            FileRefusedError: the file can't be imported as it is, or is not what was handed in.

        """
        inspector = FileInspector(self._limits, self._workbook_limits)
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(inspector.feed, piece)
                checkpoint()
        facts = inspector.finish()
        if facts.sha256 != self._task.file_sha256:
            raise FileRefusedError("文件已损坏：内容与提交时的 SHA-256 不符")
        self._facts = facts
        return facts

    async def outcomes(self, account: CarrierAccount, first_line: int) -> AsyncGenerator[list[Judged], None]:
        """Yield the rows that start at ``first_line`` or behind, in their order; inspect the file first.

        Raises:
            FileRefusedError: no ICCID column, or content that is damaged, hostile or too large.

        """
        if self._facts is None:
            raise RuntimeError

        def judge(rows: Iterable[SheetRow]) -> list[Judged]:
            return [Judged(row.last_line, check_row(row, account)) for row in rows if row.line >= first_line]

        is_text = self._facts.format is FileFormat.TEXT
        batches = (
            self._text(self._facts, judge) if is_text else self._workbook(self._facts, judge, first_line)
        )
        async with aclosing(batches):
            async for batch in batches:
                yield batch

    async def _text(self, facts: FileFacts, judge: _Judge) -> AsyncGenerator[list[Judged], None]:
        reader = CardFileReader(facts.encoding, self._limits)
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                judged = await asyncio.to_thread(lambda data: judge(reader.feed(data)), piece)
                self._notes = column_notes(reader.ignored_columns)
                yield judged
        judged = await asyncio.to_thread(lambda: judge(reader.finish()))
        self._notes = column_notes(reader.ignored_columns)
        yield judged

    async def _workbook(
        self, facts: FileFacts, judge: _Judge, first_line: int
    ) -> AsyncGenerator[list[Judged], None]:
        order = WorkbookOrder(
            format=facts.format,
            sheet=self._task.sheet,
            from_line=first_line,
            parent=os.getpid(),
            limits=self._limits,
            workbook_limits=self._workbook_limits,
        )
        async with (
            self._local_copy() as file,
            start_workbook_process(file, order) as process,
            aclosing(process.frames()) as frames,
        ):
            async for kind, content in frames:
                if kind is FrameKind.NOTES:
                    self._notes = [str(note) for note in content]
                else:
                    yield await asyncio.to_thread(lambda rows: judge(decode_rows(rows)), content)

    @asynccontextmanager
    async def _local_copy(self) -> AsyncGenerator[IO[bytes], None]:
        """Copy the file to a nameless one on this machine: a ZIP is read from its end."""
        with _open_temporary() as file:
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(_write, file, piece)
            await asyncio.to_thread(_write, file, None)
            yield file

    def _pieces(self) -> AsyncGenerator[bytes, None]:
        return self._storage.stream(self._task.file_key)


def _open_temporary() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="junhong-import-")
    except OSError as error:
        raise StorageUnavailableError(f"工作簿无法暂存：{system_reason(error)}") from error


def _write(file: IO[bytes], piece: bytes | None) -> None:
    """Write a piece, or with None what is still in the buffer."""
    try:
        if piece is None:
            file.flush()
        else:
            file.write(piece)
    except OSError as error:
        raise StorageUnavailableError(f"工作簿无法暂存：{system_reason(error)}") from error
