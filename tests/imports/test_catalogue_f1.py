"""F1: a file that is missing, empty, cut off, locked or closed ends its import at once, with the reason."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.imports import workbooks
from tests.imports.card_files import PutFile, card_file, iccid
from tests.imports.runs import ImportRuns

from junhong_cmp.storage.store import Storage, open_storage

XLSX = workbooks.xlsx({"卡": [["ICCID"], [iccid(1)]]})
XLS = workbooks.xls({"卡": [["ICCID"], [iccid(1)]]})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "文件为空"),
        ("ICCID,套餐\n,月包".encode()[:-1], "在一个字符中间被截断"),
        ("ICCID,套餐\n,月包".encode("utf-16")[:-1], "在一个字符中间被截断"),
        (XLSX[: len(XLSX) // 2], "工作簿已损坏"),
        (XLSX[:-10], "工作簿已损坏"),
        (XLS[: len(XLS) // 2], "工作簿已损坏"),
        (workbooks.encrypted(), "设有密码"),
    ],
    ids=["empty", "UTF-8 cut", "UTF-16 cut", "XLSX cut", "XLSX without its end", "XLS cut", "locked"],
)
async def test_f1_a_damaged_or_locked_file(runs: ImportRuns, data: bytes, reason: str) -> None:
    assert reason in await runs.refusal_of(data)


async def test_f1_a_file_that_is_missing(runs: ImportRuns, put_file: PutFile, storage: Storage) -> None:
    task = await put_file(card_file([1]))
    await storage.delete(task.file_key)
    assert await runs.refusal(task) == "文件不存在：对象不存在"


async def test_f1_a_file_that_is_not_the_one_handed_in(
    runs: ImportRuns, put_file: PutFile, storage: Storage
) -> None:
    task = await put_file(card_file([1]))
    await storage.put(task.file_key, card_file([2]))
    assert "SHA-256 不符" in await runs.refusal(task)


class TestLocal:
    """Objects in a folder, which others can get at."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return open_storage(f"file://{tmp_path}/objects")

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
    async def test_f1_a_file_that_may_not_be_read(
        self, runs: ImportRuns, put_file: PutFile, tmp_path: Path
    ) -> None:
        task = await put_file(card_file([1]))
        await asyncio.to_thread((tmp_path / "objects" / task.file_key).chmod, 0)
        assert "文件无法读写：存储拒绝访问" in await runs.refusal(task)

    @pytest.mark.parametrize("kind", ["a pipe", "a folder", "a link"])
    async def test_f1_something_else_in_its_place(
        self, runs: ImportRuns, put_file: PutFile, tmp_path: Path, kind: str
    ) -> None:
        task = await put_file(card_file([1]))
        path = tmp_path / "objects" / task.file_key
        path.rename(tmp_path / "moved")
        if kind == "a pipe":
            await asyncio.to_thread(os.mkfifo, path)
        elif kind == "a folder":
            await asyncio.to_thread(path.mkdir)
        else:
            await asyncio.to_thread(path.symlink_to, "/dev/zero")
        assert "文件不存在：对象键无效" in await runs.refusal(task)
