import asyncio
import csv
import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from python_calamine import CalamineWorkbook
from tests.imports.card_files import Announcements, delivery, iccid
from tests.small_disk import names_in, small_disk

from junhong_cmp.cards.iccid import normalise
from junhong_cmp.cards.model import CardStatus, CarrierAccount
from junhong_cmp.exports.columns import TITLES
from junhong_cmp.exports.errors import FileNotWrittenError, NothingFoundError
from junhong_cmp.exports.export import CardExporter, ExportFormat
from junhong_cmp.exports.selection import CardSelection
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.store import NewImport, create_import
from junhong_cmp.storage.store import open_storage

pytestmark = pytest.mark.usefixtures("cards")
ALL = CardSelection()


@pytest.fixture
def exporter(pool: asyncpg.Pool) -> CardExporter:
    return CardExporter(pool, ZoneInfo("Asia/Shanghai"))


def csv_rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


async def test_csv_keeps_digits_and_defuses_formulas(exporter: CardExporter) -> None:
    out = io.BytesIO()
    assert await exporter.to_stream(ALL, ExportFormat.CSV, out) == 6
    titles, *rows = csv_rows(out.getvalue())
    assert tuple(titles) == TITLES
    assert [row[0] for row in rows] == [f"'{iccid(number)}" for number in (0, 1, 2, 3, 4, 99)]
    assert [row[TITLES.index("套餐")] for row in rows] == ["月包", "'=1+1", "", "'  ＋2", "'-3", ""]
    assert {row[TITLES.index("状态")] for row in rows} == {"未知"}
    assert {row[TITLES.index("本周期用量(KB)")] for row in rows} == {"0"}


async def test_accounts_and_statuses_are_chosen(
    pool: asyncpg.Pool, exporter: CardExporter, cards: list[int]
) -> None:
    await pool.execute("UPDATE iot_card SET status = 'active' WHERE id = ANY ($1)", cards[1:3])
    await pool.execute("UPDATE iot_card SET deleted_at = now() WHERE id = $1", cards[2])
    for selection, count in (
        (CardSelection("cmcc-1"), 4),
        (CardSelection("cucc-1"), 1),
        (CardSelection("cmcc-1", CardStatus.ACTIVE), 1),
        (CardSelection("cucc-1", CardStatus.ACTIVE), 0),
    ):
        assert await exporter.to_stream(selection, ExportFormat.CSV, io.BytesIO()) == count


async def test_a_workbook_holds_texts_not_numbers_or_formulas(exporter: CardExporter, tmp_path: Path) -> None:
    path = tmp_path / "cards.xlsx"
    assert await exporter.to_file(ALL, ExportFormat.XLSX, path) == 6
    titles, *rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
    assert tuple(titles) == TITLES
    assert [row[0] for row in rows] == [iccid(number) for number in (0, 1, 2, 3, 4, 99)]
    assert rows[1][TITLES.index("套餐")] == "=1+1"
    assert rows[1][TITLES.index("本周期用量(KB)")] == 0
    assert names_in(tmp_path) == ["cards.xlsx"]


async def test_an_export_can_be_imported_again(exporter: CardExporter, account: CarrierAccount) -> None:
    out = io.BytesIO()
    await exporter.to_stream(CardSelection(account.code), ExportFormat.CSV, out)
    values = [row[0] for row in csv_rows(out.getvalue())[1:]]
    assert len(values) == 5
    assert [normalise(value).value for value in values] == [iccid(number) for number in range(5)]


async def test_an_unknown_account_leaves_no_file(exporter: CardExporter, tmp_path: Path) -> None:
    for kind in ExportFormat:
        with pytest.raises(NothingFoundError, match="账号不存在：nope"):
            await exporter.to_file(CardSelection("nope"), kind, tmp_path / "cards")
    assert names_in(tmp_path) == []


async def test_a_missing_folder_is_named(exporter: CardExporter, tmp_path: Path) -> None:
    with pytest.raises(FileNotWrittenError, match="不存在"):
        await exporter.to_file(ALL, ExportFormat.CSV, tmp_path / "absent" / "cards.csv")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "tiny", "8k") as folder:
        yield folder


@pytest.mark.parametrize("kind", list(ExportFormat))
async def test_a_full_disk_keeps_the_old_file_and_leaves_nothing(
    pool: asyncpg.Pool, exporter: CardExporter, tiny_disk: Path, kind: ExportFormat
) -> None:
    await pool.execute(
        "INSERT INTO iot_card (account_id, iccid, iccid19)"
        " SELECT account_id, n::text, left(n::text, 19) FROM iot_card,"
        " generate_series(89860000000000100000, 89860000000000109000, 10) AS n WHERE id = 1"
    )
    path = tiny_disk / f"cards.{kind}"
    path.write_bytes(b"old")
    with pytest.raises(FileNotWrittenError, match="磁盘已满"):
        await exporter.to_file(ALL, kind, path)
    assert path.read_bytes() == b"old"
    assert names_in(tiny_disk) == [path.name]


async def test_a_link_is_followed(exporter: CardExporter, tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_bytes(b"old")
    link.symlink_to(target)
    await exporter.to_file(ALL, ExportFormat.CSV, link)
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("kind", ExportFormat)
async def test_a_pipe_is_written_to_and_stays_one(
    exporter: CardExporter, tmp_path: Path, kind: ExportFormat
) -> None:
    pipe = tmp_path / f"cards.{kind}"
    os.mkfifo(pipe)
    reading = asyncio.create_task(asyncio.to_thread(pipe.read_bytes))
    assert await exporter.to_file(ALL, kind, pipe) > 0
    assert (await reading)[:2] in {b"\xef\xbb", b"PK"}
    assert pipe.is_fifo()


@pytest.mark.parametrize("kind", ExportFormat)
async def test_a_device_without_room_is_named(exporter: CardExporter, kind: ExportFormat) -> None:
    with pytest.raises(FileNotWrittenError, match="导出文件无法写入 /dev/full：磁盘已满"):
        await exporter.to_file(ALL, kind, Path("/dev/full"))
    assert await asyncio.to_thread(Path("/dev/full").is_char_device)


async def test_a_workbook_for_a_pipe_needs_a_temporary_folder(
    exporter: CardExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(FileNotWrittenError, match="导出文件无法写入 临时目录：不存在"):
        await exporter.to_stream(ALL, ExportFormat.XLSX, io.BytesIO())


@pytest.mark.parametrize("kind", ExportFormat)
async def test_an_export_imported_again_makes_the_same_cards(
    pool: asyncpg.Pool, exporter: CardExporter, account: CarrierAccount, tmp_path: Path, kind: ExportFormat
) -> None:
    await pool.execute("UPDATE iot_card SET batch_no = '2026-0' || id % 3")
    query = "SELECT iccid, msisdn, plan, batch_no FROM iot_card WHERE deleted_at IS NULL AND account_id = $1"
    before = {tuple(row) for row in await pool.fetch(query, account.id)}
    path = tmp_path / f"cards.{kind}"
    await exporter.to_file(CardSelection(account.code), kind, path)
    await pool.execute("UPDATE iot_card SET deleted_at = now()")
    data, storage = path.read_bytes(), open_storage("memory://")
    await storage.put("file", data)
    new = NewImport(
        account_id=account.id,
        file_name=path.name,
        file_key="file",
        file_sha256=hashlib.sha256(data).hexdigest(),
        file_bytes=len(data),
    )
    async with pool.acquire() as conn:
        task = await create_import(conn, new)
    await CardImportHandler(pool, storage, Announcements()).process_task(delivery(task.id))
    after = {tuple(row) for row in await pool.fetch(query, account.id)}
    assert after == {(*row[:2], " ".join(row[2].split()) if row[2] else None, row[3]) for row in before}
