"""Storages that can't do their part: said once, in a sentence, and not tried for ever."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import asyncpg
import pytest
from obstore.store import MemoryStore
from tests.imports.card_files import Announcements, PutFile, card_file, delivery
from tests.small_disk import small_disk

from junhong_cmp.asynq.errors import SkipRetry
from junhong_cmp.cards.store import count_cards
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import
from junhong_cmp.storage.errors import StorageDeniedError
from junhong_cmp.storage.store import Storage, open_storage

ROWS = 400


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Room for the file that is imported, and none for its result."""
    with small_disk(tmp_path / "disk", "32k") as folder:
        yield folder


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    if "disk" in request.fixturenames:
        return open_storage(f"file://{request.getfixturevalue('disk')}/objects")
    return open_storage("memory://")


async def failed_import(pool: asyncpg.Pool, handler: CardImportHandler, task: ImportTask, reason: str) -> str:
    with pytest.raises(SkipRetry, match=reason):
        await handler.process_task(delivery(task.id))
    failed = await find_import(pool, task.id)
    assert failed is not None
    assert failed.status is ImportStatus.FAILED
    return failed.error or ""


@pytest.mark.usefixtures("disk")
async def test_no_room_for_the_result_is_a_clear_end_and_cards_stay(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file(range(ROWS)))
    handler = CardImportHandler(pool, storage, announcements)
    reason = await failed_import(pool, handler, task, "存储空间已满")
    assert reason == "结果文件无法保存，已导入的卡保留：存储空间已满"
    assert await count_cards(pool) == len(announcements.card_ids) == ROWS


class ClosedStorage(Storage):
    """A storage whose objects this program may not read."""

    async def stream(self, key: str, *, chunk_bytes: int = 0) -> AsyncGenerator[bytes, None]:
        raise StorageDeniedError("存储拒绝访问：没有读写权限，或凭据无效")
        yield b""


async def test_a_file_that_may_not_be_read_is_not_tried_again(
    pool: asyncpg.Pool, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file([1]))
    closed = ClosedStorage(MemoryStore(), url="memory://", root=None)
    reason = await failed_import(pool, CardImportHandler(pool, closed, announcements), task, "没有读写权限")
    assert reason.startswith("文件无法读写：存储拒绝访问")


async def test_a_link_out_of_the_storage_is_not_followed(
    pool: asyncpg.Pool, tmp_path: Path, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file([1]))
    local = open_storage(f"file://{tmp_path}/objects")
    outside = tmp_path / "outside.csv"
    await asyncio.to_thread(outside.write_bytes, card_file([1]))
    link = tmp_path / "objects" / task.file_key
    await asyncio.to_thread(link.parent.mkdir, parents=True)
    await asyncio.to_thread(link.symlink_to, outside)
    await failed_import(pool, CardImportHandler(pool, local, announcements), task, "符号链接")
    assert await count_cards(pool) == 0
