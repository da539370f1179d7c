"""The importer: one file from storage to cards, shards and its result file."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import structlog

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.store import load_cards
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.imports.chunk import Chunk, Outcome, SupersededError, write_chunk
from junhong_cmp.imports.endings import finish_import
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.model import ImportTask
from junhong_cmp.imports.remarks import note_file
from junhong_cmp.imports.report import write_report
from junhong_cmp.imports.row_store import list_latest_imported
from junhong_cmp.imports.source import CardSource
from junhong_cmp.imports.temporary import temporary_folder
from junhong_cmp.storage.store import Storage

log = structlog.stdlib.get_logger(__name__)

CHUNK_ROWS: Final = 500
"""Larger chunks gain little throughput and hold the event loop longer when their cards come back."""
_DRAIN_DELAY: Final = timedelta(seconds=1)


class CardAnnouncer(Protocol):
    """Who is told of new cards; telling twice must be harmless."""

    async def cards_created(self, cards: Sequence[Card]) -> object:
        """Take the cards into polling."""
        ...


class Importer:
    """An importer carries one import from where the last run of it ended to its end.

    It reads the file twice: once to see that it is whole, once for the rows. It takes one step at a time
    (docs/adr/0016): a chunk is read, written, and its cards are announced after their commit, before the
    next one is read. A run that resumes announces those of the last chunk again before all else: the run
    before may have died in between, and the file may be gone.
    """

    def __init__(
        self,
        pool: Pool,
        storage: Storage,
        announcer: CardAnnouncer,
        *,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._pool = pool
        self._storage = storage
        self._announcer = announcer
        self._chunk_rows = chunk_rows

    async def run(self, task: ImportTask, account: CarrierAccount, draining: asyncio.Event) -> None:
        """Import the rest of the file, write the result file and make the import final.

        Raises:
            FileRefusedError, ObjectMissingError: the file can't be imported, now or later.
            SupersededError: another run of the same import is at work, or it has been ended.
            PutBack: the process is draining; everything up to the last chunk is kept.

        """
        if task.next_line > 0:
            await self._announce_latest(task)
        source = CardSource(self._storage, task)
        facts = await source.inspect(lambda: self._stop_if_draining(draining, task.next_line))
        await note_file(self._pool, task.id, source.notes, facts.lines or None)
        async with aclosing(self._chunks(source, task, account)) as chunks:
            async for chunk in chunks:
                self._stop_if_draining(draining, chunk.first_line)
                if cards := await self._write(task, chunk):
                    await self._announcer.cards_created(cards)
        await note_file(self._pool, task.id, source.notes)
        self._stop_if_draining(draining, None)
        if not await finish_import(self._pool, task.id, result_key=await self.write_result(task)):
            raise SupersededError("导入在写结果文件时已被结束")

    async def write_result(self, task: ImportTask) -> str:
        """Store the result file of what has been dealt with so far and return its key."""
        # The hash makes the key hard to guess, and a second run replaces the file of the first.
        key = f"imports/results/{task.id}-{task.file_sha256[:16]}.csv"
        with temporary_folder() as folder:
            path = Path(folder) / "result.csv"
            await write_report(self._pool, task.id, path)
            await self._storage.put(key, path)
        return key

    async def _announce_latest(self, task: ImportTask) -> None:
        ids = await list_latest_imported(self._pool, task.id, self._chunk_rows)
        log.info("继续导入", import_id=task.id, next_line=task.next_line, announced=len(ids))
        cards = await load_cards(self._pool, ids)
        await self._announcer.cards_created(list(cards.values()))

    async def _chunks(
        self, source: CardSource, task: ImportTask, account: CarrierAccount
    ) -> AsyncGenerator[Chunk, None]:
        cutter = _ChunkCutter(task.next_line, self._chunk_rows)
        async with aclosing(source.outcomes(account, task.next_line)) as batches:
            async for judged in batches:
                for chunk in cutter.add(judged):
                    yield chunk
        if (last := cutter.rest()) is not None:
            yield last

    async def _write(self, task: ImportTask, chunk: Chunk) -> list[Card]:
        return await in_transaction(
            self._pool, lambda conn: write_chunk(conn, task.id, task.account_id, chunk)
        )

    @staticmethod
    def _stop_if_draining(draining: asyncio.Event, line: int | None) -> None:
        if draining.is_set():
            where = "写结果文件前" if line is None else f"第 {line} 行"
            raise PutBack(_DRAIN_DELAY, f"进程正在退出，导入在{where}暂停")


class _ChunkCutter:
    """A chunk cutter gathers judged rows and cuts them into chunks that follow one another."""

    def __init__(self, first_line: int, size: int) -> None:
        self._first_line = first_line
        self._next_line = first_line
        self._size = size
        self._outcomes: list[Outcome] = []

    def add(self, judged: Sequence[Judged]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for last_line, outcome in judged:
            self._outcomes.append(outcome)
            self._next_line = last_line + 1
            if len(self._outcomes) >= self._size and (chunk := self.rest()) is not None:
                chunks.append(chunk)
        return chunks

    def rest(self) -> Chunk | None:
        if not self._outcomes:
            return None
        chunk = Chunk(self._first_line, self._next_line, self._outcomes)
        self._first_line, self._outcomes = self._next_line, []
        return chunk
