import asyncio
import csv
import hashlib
import io
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.imports import workbooks
from tests.imports.card_files import Announcements, PutFile, card_file, delivery, iccid

from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.store import count_cards
from junhong_cmp.imports.endings import cancel_import
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import NewImport, create_import, find_import
from junhong_cmp.storage.store import Storage, open_storage


async def get_import(pool: asyncpg.Pool, task: ImportTask) -> ImportTask:
    current = await find_import(pool, task.id)
    assert current is not None
    return current


class CancellingAnnouncements(Announcements):
    """Cancels the import when it hears of cards for the second time."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        super().__init__()
        self._pool = pool
        self.import_id = 0

    async def cards_created(self, cards: Sequence[Card]) -> None:
        await super().cards_created(cards)
        if self.calls == 2:
            assert await cancel_import(self._pool, self.import_id)


async def test_a_pending_import_is_cancelled_at_once_and_its_task_does_nothing(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file(range(5)))
    assert await cancel_import(pool, task.id)
    await CardImportHandler(pool, storage, announcements).process_task(delivery(task.id))
    cancelled = await get_import(pool, task)
    assert (cancelled.status, cancelled.total, cancelled.result_key) == (ImportStatus.CANCELLED, 0, None)
    assert cancelled.finished_at is not None
    assert await count_cards(pool) == announcements.calls == 0


async def test_a_running_import_stops_within_a_chunk_and_what_it_imported_stays(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile
) -> None:
    task = await put_file(card_file(range(100)))
    announcements = CancellingAnnouncements(pool)
    announcements.import_id = task.id
    with capture_logs() as logs:
        await CardImportHandler(pool, storage, announcements, chunk_rows=10).process_task(delivery(task.id))
    cancelled = await get_import(pool, task)
    assert cancelled.status is ImportStatus.CANCELLED
    assert cancelled.total == 20
    assert cancelled.imported == await count_cards(pool) == cancelled.total
    assert logs[-1]["event"] == "导入已取消，已导入的卡保留"
    # Told of all it imported, and a result file for exactly those rows.
    assert len(set(announcements.card_ids)) == cancelled.total
    result = (await storage.get(cancelled.result_key or "")).decode("utf-8-sig")
    assert len(list(csv.reader(io.StringIO(result)))) == cancelled.total + 1


async def test_a_cancelled_import_without_its_result_file_gets_it_from_the_next_delivery(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile
) -> None:
    """The worker died between the last chunk and the result; the import was cancelled meanwhile."""
    task = await put_file(card_file(range(35)))
    announcements = Announcements()
    announcements.fail_at_call = 2
    handler = CardImportHandler(pool, storage, announcements, chunk_rows=10)
    with pytest.raises(Exception, match="依赖的服务暂不可用"):
        await handler.process_task(delivery(task.id))
    assert await cancel_import(pool, task.id)
    await handler.process_task(delivery(task.id))
    first = await get_import(pool, task)
    assert first.result_key is not None
    await handler.process_task(delivery(task.id))
    assert await get_import(pool, task) == first


async def test_only_what_is_not_final_can_be_cancelled(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file([1]))
    await CardImportHandler(pool, storage, announcements).process_task(delivery(task.id))
    assert not await cancel_import(pool, task.id)
    assert not await cancel_import(pool, 4711)
    assert (await get_import(pool, task)).status is ImportStatus.DONE


async def test_of_cancelling_and_finishing_at_once_one_wins(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements
) -> None:
    for number in range(8):
        task = await put_file(card_file(range(number * 10, number * 10 + 10)))
        handler = CardImportHandler(pool, storage, announcements, chunk_rows=5)
        cancelled, _ = await asyncio.gather(
            cancel_import(pool, task.id), handler.process_task(delivery(task.id))
        )
        ended = await get_import(pool, task)
        assert ended.status is (ImportStatus.CANCELLED if cancelled else ImportStatus.DONE)
        assert ended.imported == await pool.fetchval(
            "SELECT count(*) FROM import_row WHERE task_id = $1 AND status = 'imported'", task.id
        )


async def test_a_cancelled_file_handed_in_again_is_a_new_import(
    pool: asyncpg.Pool, put_file: PutFile
) -> None:
    task = await put_file(card_file([1]))
    await cancel_import(pool, task.id)
    again = await put_file(card_file([1]))
    assert again.id != task.id
    assert again.status is ImportStatus.PENDING
    assert await find_import(pool, task.id) is None


async def test_sheets_of_one_file_are_imports_of_their_own(pool: asyncpg.Pool, put_file: PutFile) -> None:
    task = await put_file(card_file([1]))
    new = NewImport(
        account_id=task.account_id,
        file_name=task.file_name,
        file_key=task.file_key,
        file_sha256=task.file_sha256,
        file_bytes=task.file_bytes,
        sheet="二月",
    )
    async with pool.acquire() as conn:
        other = await create_import(conn, new)
        assert (await create_import(conn, new)).id == other.id
    assert (other.id != task.id, other.sheet) == (True, "二月")


class CancellingStorage(Storage):
    """A storage in whose middle somebody cancels the import: when its file is read, or its result stored."""

    def __init__(self, within: Storage, pool: asyncpg.Pool, stage: str) -> None:
        self._within, self._pool, self._stage = within, pool, stage
        self.import_id = 0

    async def stream(self, key: str, *, chunk_bytes: int = 65_536) -> AsyncGenerator[bytes, None]:
        await self._cancel("read")
        async for piece in self._within.stream(key, chunk_bytes=chunk_bytes):
            yield piece

    async def put(self, key: str, data: bytes | Path) -> None:
        await self._cancel("store")
        await self._within.put(key, data)

    async def _cancel(self, stage: str) -> None:
        if self.import_id and stage == self._stage:
            await cancel_import(self._pool, self.import_id)


@pytest.mark.parametrize(("stage", "rows"), [("read", 0), ("store", 35)])
async def test_an_import_can_be_cancelled_while_it_reads_or_stores(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, stage: str, rows: int
) -> None:
    task = await put_file(card_file(range(35)))
    cancelling = CancellingStorage(storage, pool, stage)
    cancelling.import_id = task.id
    await CardImportHandler(pool, cancelling, Announcements()).process_task(delivery(task.id))
    cancelled = await get_import(pool, task)
    assert (cancelled.status, cancelled.total, cancelled.error) == (ImportStatus.CANCELLED, rows, None)
    assert await count_cards(pool) == rows
    assert (cancelled.result_key is not None) is (rows > 0)


async def test_an_import_that_fails_on_its_way_tells_what_it_has_imported(
    pool: asyncpg.Pool, account: CarrierAccount
) -> None:
    storage = open_storage("memory://")
    parts = workbooks.xlsx_parts({"卡": [["ICCID"], *([iccid(number)] for number in range(2000))]})
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"][:-100]
    data = workbooks.archive(parts)
    await storage.put("file", data)
    new = NewImport(
        account_id=account.id,
        file_name="cards.xlsx",
        file_key="file",
        file_sha256=hashlib.sha256(data).hexdigest(),
        file_bytes=len(data),
    )
    async with pool.acquire() as conn:
        task = await create_import(conn, new)
    handler = CardImportHandler(pool, storage, Announcements(), chunk_rows=100)
    with pytest.raises(SkipRetry, match="工作簿已损坏"):
        await handler.process_task(delivery(task.id))
    failed = await get_import(pool, task)
    assert failed.status is ImportStatus.FAILED
    assert 0 < failed.imported == await count_cards(pool) < 2000
    assert failed.result_key is not None
    assert (await storage.get(failed.result_key)).count(b"\r\n") == failed.total + 1
