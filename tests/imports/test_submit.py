import os
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from tests.imports.card_files import Announcements, card_file, delivery

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.errors import SkipRetry, TaskIdConflictError
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.imports.errors import AccountUnknownError, FileRefusedError
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import
from junhong_cmp.imports.submit import FileChoice, submit_import
from junhong_cmp.imports.tasks import message_for
from junhong_cmp.storage.store import Storage


class Desk:
    """Hands files in for the account under test."""

    def __init__(self, pool: asyncpg.Pool, storage: Storage, redis: Redis) -> None:
        self.pool, self.storage, self.client = pool, storage, Client(redis)

    async def hand_in(self, path: Path, *, account_code: str = "acc", sheet: str = "") -> ImportTask:
        return await submit_import(
            self.pool,
            self.storage,
            self.client,
            account_code=account_code,
            path=path,
            choice=FileChoice(sheet=sheet),
        )

    async def is_enqueued(self, task: ImportTask) -> bool:
        try:
            await self.client.enqueue(*message_for(task.id))
        except TaskIdConflictError:
            return True
        return False


@pytest.fixture
def desk(pool: asyncpg.Pool, storage: Storage, redis: Redis, account: CarrierAccount) -> Desk:
    return Desk(pool, storage, redis)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "一月\u202e发卡.csv"
    path.write_bytes(card_file(range(3)))
    return path


async def test_a_file_is_stored_recorded_and_enqueued(desk: Desk, file: Path) -> None:
    data = card_file(range(3))
    task = await desk.hand_in(file)
    assert (task.status, task.file_name) == (ImportStatus.PENDING, "一月_发卡.csv")
    assert task.file_bytes == len(data)
    assert await desk.storage.get(task.file_key) == data
    assert await desk.is_enqueued(task)


async def test_the_same_file_for_the_same_account_is_one_import(
    desk: Desk, file: Path, announcements: Announcements
) -> None:
    first = await desk.hand_in(file)
    assert await desk.hand_in(file) == first
    await CardImportHandler(desk.pool, desk.storage, announcements).process_task(delivery(first.id))
    again = await desk.hand_in(file)
    assert (again.id, again.status) == (first.id, ImportStatus.DONE)


async def test_the_same_file_for_another_account_is_another_import(
    desk: Desk, file: Path, other_account: CarrierAccount
) -> None:
    first, second = await desk.hand_in(file), await desk.hand_in(file, account_code="other")
    assert first.id != second.id
    assert second.account_id == other_account.id


async def test_a_failed_import_is_replaced_when_its_file_comes_again(
    desk: Desk, file: Path, announcements: Announcements
) -> None:
    first = await desk.hand_in(file)
    await desk.storage.delete(first.file_key)
    handler = CardImportHandler(desk.pool, desk.storage, announcements)
    with pytest.raises(SkipRetry):
        await handler.process_task(delivery(first.id))
    second = await desk.hand_in(file)
    assert (second.status, await find_import(desk.pool, first.id)) == (ImportStatus.PENDING, None)
    assert await desk.is_enqueued(second)
    await handler.process_task(delivery(second.id))
    done = await find_import(desk.pool, second.id)
    assert done is not None
    assert done.imported == 3


@pytest.mark.parametrize(
    ("code", "shown"), [("nope", "nope"), ("n\udcffo", r"n\\udcffo"), ("n\0o", r"n\\u0000o")]
)
async def test_an_unknown_account_is_named_and_nothing_is_kept(
    desk: Desk, file: Path, code: str, shown: str
) -> None:
    with pytest.raises(AccountUnknownError, match=f"账号不存在：{shown}"):
        await desk.hand_in(file, account_code=code)
    assert await desk.pool.fetchval("SELECT count(*) FROM import_task") == 0


@pytest.mark.parametrize("sheet", ["卡\udcff", "卡\0", "卡\n", "卡" * 256])
async def test_a_sheet_that_can_not_be_is_refused(desk: Desk, file: Path, sheet: str) -> None:
    with pytest.raises(FileRefusedError, match="工作表名称无效：卡"):
        await desk.hand_in(file, sheet=sheet)
    assert await desk.pool.fetchval("SELECT count(*) FROM import_task") == 0


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("cards.gz", b"\x1f\x8b\x08\x00...", "这是压缩文件"),
        ("empty.csv", b"", "文件为空"),
        ("broken.csv", b"ICCID\n\xff\xff", "无法识别文件编码"),
        ("missing.csv", None, "文件无法读取"),
    ],
)
async def test_a_file_that_cannot_be_imported_is_refused_at_the_desk(
    desk: Desk, tmp_path: Path, name: str, data: bytes | None, reason: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(FileRefusedError, match=reason):
        await desk.hand_in(path)
    assert await desk.pool.fetchval("SELECT count(*) FROM import_task") == 0


async def test_a_folder_is_refused(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(FileRefusedError, match="文件无法读取"):
        await desk.hand_in(tmp_path)


async def test_a_pipe_is_refused_and_not_waited_for(desk: Desk, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(FileRefusedError, match="不是普通文件"):
            await desk.hand_in(path)


async def test_a_file_that_is_too_large_is_not_read(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(FileRefusedError, match="文件过大"):
        await desk.hand_in(path)
