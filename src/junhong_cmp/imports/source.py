"""The file of an import: looked over once as a whole, then read and judged row by row."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.chunk import Outcome
from junhong_cmp.imports.encoding import FileFacts, FileInspector
from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.reader import CardFileReader
from junhong_cmp.imports.rows import check_row
from junhong_cmp.imports.sheet_row import SheetRow
from junhong_cmp.storage.store import Storage


class Judged(NamedTuple):
    """One row's outcome as far as the file tells, and the last line that the row covers."""

    last_line: int
    outcome: Outcome


class CardSource:
    """A card source streams the file of one import from storage, in bounded memory.

    Decoding and row rules run in a thread, piece by piece (docs/adr/0004).
    """

    def __init__(self, storage: Storage, task: ImportTask) -> None:
        self._storage = storage
        self._task = task
        self._facts: FileFacts | None = None

    async def inspect(self, checkpoint: Callable[[], None]) -> FileFacts:
        """Read the whole file once and return its facts; ``checkpoint`` may raise to end that early.

        Raises:
            FileRefusedError: the file can't be imported as it is, or is not what was handed in.

        """
        inspector = FileInspector()
        async with aclosing(self._storage.stream(self._task.file_key)) as pieces:
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
            FileRefusedError: no ICCID column, or bytes that are no text.

        """
        if self._facts is None:
            raise RuntimeError
        reader = CardFileReader(self._facts.encoding)

        def judge(rows: list[SheetRow]) -> list[Judged]:
            return [Judged(row.last_line, check_row(row, account)) for row in rows if row.line >= first_line]

        async with aclosing(self._storage.stream(self._task.file_key)) as pieces:
            async for piece in pieces:
                yield await asyncio.to_thread(lambda data: judge(reader.feed(data)), piece)
        yield await asyncio.to_thread(lambda: judge(reader.finish()))
