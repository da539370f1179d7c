"""A temporary folder without room: the import waits, says why, and goes on when there is some."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.imports import workbooks
from tests.imports.card_files import Announcements, PutFile, card_file, delivery, iccid
from tests.small_disk import names_in, small_disk

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.store import count_cards
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus
from junhong_cmp.imports.store import find_import
from junhong_cmp.imports.temporary import temporary_file, temporary_folder
from junhong_cmp.storage.errors import StorageUnavailableError
from junhong_cmp.storage.store import Storage

ROWS = 900
WORKBOOK = workbooks.xlsx({"卡": [["ICCID"], *[[iccid(n)] for n in range(ROWS)]]})


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder, with 4 KiB of room while its ballast is there."""
    with small_disk(tmp_path / "disk", "256k") as folder:
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        (folder / "ballast").write_bytes(bytes(252 * 1024))
        yield folder


@pytest.mark.parametrize("data", [card_file(range(ROWS)), WORKBOOK], ids=["its result", "its copy"])
async def test_an_import_waits_for_room_and_says_so_once(
    pool: asyncpg.Pool,
    storage: Storage,
    put_file: PutFile,
    announcements: Announcements,
    crowded: Path,
    data: bytes,
) -> None:
    task = await put_file(data)
    handler = CardImportHandler(pool, storage, announcements)
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(PutBack, match="磁盘已满"):
                await handler.process_task(delivery(task.id, retried=25, max_retry=25))
    waiting = await find_import(pool, task.id)
    assert waiting is not None
    assert waiting.status is ImportStatus.RUNNING
    assert waiting.waits_for == f"本机临时目录无法写入：{crowded}：磁盘已满；可清理，或用 TMPDIR 指定其他目录"
    told = [entry for entry in logs if entry["event"] == "导入暂停，条件恢复后自动继续"]
    assert [(entry["import_id"], entry["reason"]) for entry in told] == [(task.id, waiting.waits_for)]
    assert names_in(crowded) == ["ballast"]
    (crowded / "ballast").unlink()
    await handler.process_task(delivery(task.id))
    done = await find_import(pool, task.id)
    assert done is not None
    assert (done.status, done.imported, done.waits_for) == (ImportStatus.DONE, ROWS, None)
    assert await count_cards(pool) == ROWS


@pytest.mark.parametrize("make", [temporary_folder, temporary_file])
def test_a_folder_that_is_gone_is_named(
    monkeypatch: pytest.MonkeyPatch, make: object, tmp_path: Path
) -> None:
    assert callable(make)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageUnavailableError, match=r"本机临时目录无法写入：.*/gone：不存在"):
        make()


def test_a_machine_without_any_folder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/gone"])
    with pytest.raises(StorageUnavailableError, match="都已满、只读或不存在"):
        temporary_file()
