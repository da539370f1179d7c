"""F3: a file, a line or a row without end is streamed: memory stays flat, and the others are imported."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice

import asyncpg
import psutil
import pytest
from obstore.store import MemoryStore
from structlog.testing import capture_logs
from tests.imports.card_files import Announcements, PutFile, card_file, delivery, iccid

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import NewImport, create_import, find_import
from junhong_cmp.storage.errors import StorageUnavailableError
from junhong_cmp.storage.store import Storage

MEBIBYTE = 1024**2


class Generated(Storage):
    """A storage whose file is made as it is read, and may break off; results go to memory."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        super().__init__(MemoryStore(), url="memory://", root=None)
        self._made = pieces
        self.break_off_after: int | None = None

    async def stream(self, key: str, *, chunk_bytes: int = 0) -> AsyncGenerator[bytes, None]:
        for piece in islice(self._made(), self.break_off_after):
            yield piece
        if self.break_off_after is not None:
            raise StorageUnavailableError("对象存储暂不可用：连接中断")


async def hand_in(pool: asyncpg.Pool, account: CarrierAccount, storage: Generated) -> ImportTask:
    digest, size = hashlib.sha256(), 0
    async for piece in storage.stream("made"):
        digest.update(piece)
        size += len(piece)
    new = NewImport(
        account_id=account.id,
        file_name="made.csv",
        file_key="made",
        file_sha256=digest.hexdigest(),
        file_bytes=size,
    )
    async with pool.acquire() as conn:
        return await create_import(conn, new)


def one_line() -> Iterator[bytes]:
    yield f"ICCID\n{iccid(1)}\n".encode()
    for _ in range(256):
        yield b"8" * MEBIBYTE
    yield f"\n{iccid(2)}\n".encode()


def many_columns() -> Iterator[bytes]:
    yield f"ICCID,x\n{iccid(1)},1\n".encode()
    yield b"1," * 1_000_000
    yield f"\n{iccid(2)},1\n".encode()


@pytest.mark.parametrize("made", [one_line, many_columns])
async def test_f3_a_line_of_256_mebibytes_or_a_million_columns_is_one_bad_row(
    pool: asyncpg.Pool, account: CarrierAccount, made: Callable[[], Iterator[bytes]]
) -> None:
    storage = Generated(made)
    task = await hand_in(pool, account, storage)
    before = psutil.Process().memory_info().rss
    await CardImportHandler(pool, storage, Announcements()).process_task(delivery(task.id))
    assert psutil.Process().memory_info().rss - before < 64 * MEBIBYTE
    done = await find_import(pool, task.id)
    assert done is not None
    assert (done.status, done.imported, done.rejected) == (ImportStatus.DONE, 2, 1)
    reasons = await pool.fetch("SELECT line_no, reason FROM import_row WHERE status = 'rejected'")
    assert [tuple(row) for row in reasons] == [(3, "无法解析：行过长")]


async def test_f3_a_file_whose_storage_breaks_off_goes_on_where_it_was(
    pool: asyncpg.Pool, account: CarrierAccount
) -> None:
    """Progress is kept by row; the whole file is looked over again, and no row is written twice."""
    data = card_file(range(30_000))
    storage = Generated(lambda: (data[at : at + 65_536] for at in range(0, len(data), 65_536)))
    task = await hand_in(pool, account, storage)
    handler = CardImportHandler(pool, storage, Announcements())
    looks = 0

    def pieces() -> Iterator[bytes]:
        nonlocal looks
        looks += 1
        storage.break_off_after = 10 if looks == 2 else None
        return (data[at : at + 65_536] for at in range(0, len(data), 65_536))

    storage._made = pieces
    with capture_logs(), pytest.raises(PutBack, match="连接中断"):
        await handler.process_task(delivery(task.id))
    half = await find_import(pool, task.id)
    assert half is not None
    assert 0 < half.total < 30_000
    await handler.process_task(delivery(task.id))
    done = await find_import(pool, task.id)
    assert done is not None
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, 30_000, 30_000)
    assert await pool.fetchval("SELECT count(*) FROM iot_card") == 30_000


async def test_f3_the_same_cards_in_another_file_are_imported_once(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile
) -> None:
    handler = CardImportHandler(pool, storage, Announcements())
    first = await put_file(card_file(range(1_200)))
    await handler.process_task(delivery(first.id))
    second = await put_file(card_file(range(1_200)) + b"\n")
    await handler.process_task(delivery(second.id))
    done = await find_import(pool, second.id)
    assert done is not None
    assert (done.total, done.imported, done.skipped) == (1_200, 0, 1_200)
    assert await pool.fetchval("SELECT count(*) FROM iot_card") == 1_200
