"""The file of an import: looked over once as a whole, then read and judged row by row."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import IO, Final

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.encoding import FileFacts, FileInspector
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.formats import FileFormat, extension_note
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.limits import ImportLimits, ParserLimits, WorkbookLimits
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.parser_frames import FrameKind, decode_rows
from junhong_cmp.imports.parser_order import ParserAccount, ParserOrder
from junhong_cmp.imports.parser_process import start_parser
from junhong_cmp.imports.temporary import no_room, temporary_file
from junhong_cmp.storage.store import Storage

_NO_SHEETS: Final = "文本文件没有工作表，指定的工作表未起作用"


class CardSource:
    """A card source streams the file of one import from storage, in bounded memory.

    It is read and judged by a process of its own (docs/adr/0010), which a text is piped to and a workbook is
    copied for. Closing :meth:`outcomes` ends whatever is at work.
    """

    def __init__(
        self,
        storage: Storage,
        task: ImportTask,
        *,
        limits: ImportLimits | None = None,
        workbook_limits: WorkbookLimits | None = None,
        parser_limits: ParserLimits | None = None,
    ) -> None:
        self._storage = storage
        self._task = task
        self._limits = limits or ImportLimits()
        self._workbook_limits = workbook_limits or WorkbookLimits()
        self._parser_limits = parser_limits or ParserLimits()
        self._facts: FileFacts | None = None
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell the operator about the file as a whole; complete with the first outcomes."""
        if self._facts is None:
            return tuple(self._notes)
        name = extension_note(self._task.file_name, self._facts.format)
        sheet = _NO_SHEETS if self._task.sheet and self._facts.format is FileFormat.TEXT else None
        return (*(note for note in (name, sheet) if note), *self._notes)

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
        order = self._order(self._facts, account, first_line)
        if self._facts.format is FileFormat.TEXT:
            batches = self._parse(self._same_pieces(), order)
        else:
            batches = self._parse_copy(order)
        async with aclosing(batches):
            async for batch in batches:
                yield batch

    def _order(self, facts: FileFacts, account: CarrierAccount, first_line: int) -> ParserOrder:
        return ParserOrder(
            format=facts.format,
            encoding=facts.encoding,
            sheet=self._task.sheet,
            from_line=first_line,
            account=ParserAccount(account.carrier, account.code, account.name),
            parent=os.getpid(),
            cpu=self._parser_limits.cpu_for(facts.size),
            limits=self._limits,
            workbook_limits=self._workbook_limits,
            parser_limits=self._parser_limits,
        )

    async def _parse_copy(self, order: ParserOrder) -> AsyncGenerator[list[Judged], None]:
        async with self._local_copy() as file, aclosing(self._parse(file, order)) as batches:
            async for batch in batches:
                yield batch

    async def _parse(
        self, source: IO[bytes] | AsyncGenerator[bytes, None], order: ParserOrder
    ) -> AsyncGenerator[list[Judged], None]:
        async with start_parser(source, order) as parser, aclosing(parser.frames()) as frames:
            async for kind, content in frames:
                if kind is FrameKind.NOTES:
                    self._notes = [str(note) for note in content]
                else:
                    yield decode_rows(content)
                    await asyncio.sleep(0)  # many frames may have come, and none of them is waited for

    @asynccontextmanager
    async def _local_copy(self) -> AsyncGenerator[IO[bytes], None]:
        """Copy the file to a nameless one on this machine: a ZIP is read from its end."""
        file = temporary_file()
        try:
            async with aclosing(self._same_pieces()) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(_write, file, piece)
            await asyncio.to_thread(_write, file, None)
            yield file
        finally:
            with suppress(OSError):  # what is still in its buffer found no room, which has been told
                file.close()

    def _pieces(self) -> AsyncGenerator[bytes, None]:
        return self._storage.stream(self._task.file_key)

    async def _same_pieces(self) -> AsyncGenerator[bytes, None]:
        """Read the file once more; raises FileRefusedError at its end if it is not the one looked over."""
        digest = hashlib.sha256()
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                digest.update(piece)
                yield piece
        if digest.hexdigest() != self._task.file_sha256:
            raise FileRefusedError("文件在导入过程中被更改，已中止；请重新提交")


def _write(file: IO[bytes], piece: bytes | None) -> None:
    """Write a piece, or with None what is still in the buffer."""
    try:
        if piece is None:
            file.flush()
        else:
            file.write(piece)
    except OSError as error:
        raise no_room(error) from error
