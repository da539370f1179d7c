import asyncio
import codecs
import csv
import io
from collections.abc import Sequence

import asyncpg
import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from structlog.testing import capture_logs
from tests.imports.card_files import Announcements, PutFile, card_file, delivery, iccid
from tests.waiting import wait_until

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.cards.model import Card, CarrierAccount, NewCard
from junhong_cmp.cards.store import count_cards, insert_cards
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.model import ImportStatus, ImportTask, RowResult, RowStatus
from junhong_cmp.imports.store import find_import
from junhong_cmp.storage.store import Storage, open_storage


@pytest.fixture
def handler(pool: asyncpg.Pool, storage: Storage, announcements: Announcements) -> CardImportHandler:
    return CardImportHandler(pool, storage, announcements, chunk_rows=10)


async def get_import(pool: asyncpg.Pool, task: ImportTask) -> ImportTask:
    current = await find_import(pool, task.id)
    assert current is not None
    return current


async def rows_of(pool: asyncpg.Pool, task: ImportTask) -> dict[int, RowResult]:
    rows = await pool.fetch(
        "SELECT line_no, status, value, card_id, reason_code, reason, warnings FROM import_row "
        "WHERE task_id = $1 ORDER BY line_no",
        task.id,
    )
    return {row["line_no"]: RowResult(**row) for row in rows}


async def card_ids(pool: asyncpg.Pool) -> list[int]:
    return [row["id"] for row in await pool.fetch("SELECT id FROM iot_card ORDER BY id")]


async def test_a_clean_file_becomes_cards_and_announcements(
    pool: asyncpg.Pool,
    handler: CardImportHandler,
    put_file: PutFile,
    account: CarrierAccount,
    announcements: Announcements,
) -> None:
    task = await put_file(card_file(range(35)))
    with capture_logs() as logs:
        await handler.process_task(delivery(task.id))
    done = await get_import(pool, task)
    assert (done.status, done.total, done.imported, done.next_line) == (ImportStatus.DONE, 35, 35, 37)
    assert done.started_at is not None
    assert done.finished_at is not None
    assert sorted(announcements.card_ids) == await card_ids(pool)
    assert announcements.calls == 4
    row = await pool.fetchrow("SELECT * FROM iot_card WHERE iccid = $1", iccid(3))
    assert row is not None
    assert (row["msisdn"], row["account_id"], row["polling_enabled"]) == ("1064000000003", account.id, True)
    assert [entry["event"] for entry in logs] == ["开始导入", "导入完成"]


async def test_every_kind_of_row_has_its_own_outcome(
    pool: asyncpg.Pool,
    handler: CardImportHandler,
    put_file: PutFile,
    account: CarrierAccount,
    other_account: CarrierAccount,
    announcements: Announcements,
) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await insert_cards(conn, account.id, [NewCard(iccid=iccid(100))])
        await insert_cards(conn, other_account.id, [NewCard(iccid=iccid(200))])
    lines = [
        "卡号ICCID,接入号,套餐",  # 1
        f"{iccid(1)},10640000000,月包",  # 2 imported
        f"'{iccid(2)}\t,,",  # 3 imported
        f'="{iccid(1)}",,',  # 4 duplicate of line 2
        f"{iccid(100)},,",  # 5 exists
        f"{iccid(200)},,",  # 6 other account
        "8.98605E+19,,",  # 7 rejected
        "",  # 8 blank
        f"{iccid(3)[:-1]},,",  # 9 imported, 19 characters
        f"{iccid(3)},,",  # 10 duplicate of line 9 in the long form
        f"{iccid(1)},,",  # 11 duplicate of line 2
        f"{iccid(100)},,",  # 12 duplicate of line 5
        f"{iccid(200)},,",  # 13 other account
        *[f"{iccid(number)},," for number in range(300, 310)],  # 14-23 imported, into the next chunk
        f"{iccid(2)},,",  # 24 duplicate of line 3, across chunks
        f"{iccid(100)},,",  # 25 duplicate of line 5, across chunks
        f'{iccid(4)},,"开',  # 26 quote not closed
        f"{iccid(5)},,",  # 27 imported
    ]
    task = await put_file("\r\n".join(lines).encode("gb18030"))
    await handler.process_task(delivery(task.id))
    rows = await rows_of(pool, task)
    done = await get_import(pool, task)
    assert {line: (row.status, row.reason_code) for line, row in rows.items() if row.reason_code} == {
        4: (RowStatus.SKIPPED, "duplicate_in_file"),
        5: (RowStatus.SKIPPED, "exists"),
        6: (RowStatus.REJECTED, "other_account"),
        7: (RowStatus.REJECTED, "iccid_scientific"),
        10: (RowStatus.SKIPPED, "duplicate_in_file"),
        11: (RowStatus.SKIPPED, "duplicate_in_file"),
        12: (RowStatus.SKIPPED, "duplicate_in_file"),
        13: (RowStatus.REJECTED, "other_account"),
        24: (RowStatus.SKIPPED, "duplicate_in_file"),
        25: (RowStatus.SKIPPED, "duplicate_in_file"),
        26: (RowStatus.REJECTED, "row_unreadable"),
    }
    assert [rows[line].reason for line in (10, 24, 25, 6, 5)] == [
        "文件内重复，首次出现在第 9 行",
        "文件内重复，首次出现在第 3 行",
        "文件内重复，首次出现在第 5 行",
        "属于其他账号",
        "已存在",
    ]
    assert (done.total, done.imported, done.skipped, done.rejected) == (25, 14, 7, 4)
    assert len(announcements.card_ids) == 14


async def test_a_short_number_of_another_account_hides_no_card_behind_it(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, other_account: CarrierAccount
) -> None:
    """The number of 19 characters is the other's card; that of 20 begins with it and is another card."""
    short = iccid(7)[:19]
    async with pool.acquire() as conn, conn.transaction():
        await insert_cards(conn, other_account.id, [NewCard(iccid=f"{short}A")])
    task = await put_file(f"ICCID\n{short}\n{short}B\n{short}B\n{short}A".encode())
    await handler.process_task(delivery(task.id))
    rows = await rows_of(pool, task)
    assert [rows[line].status for line in range(2, 6)] == ["rejected", "imported", "skipped", "rejected"]


async def test_the_result_file_says_what_the_rows_say(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, storage: Storage
) -> None:
    task = await put_file(f"ICCID\n{iccid(1)}\n=cmd|' /C calc'!A0\n{iccid(1)}\n".encode())
    await handler.process_task(delivery(task.id))
    done = await get_import(pool, task)
    assert done.result_key is not None
    data = await storage.get(done.result_key)
    assert data.startswith(codecs.BOM_UTF8)
    assert list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))) == [
        ["行号", "结果", "ICCID", "原因", "提醒"],
        ["2", "已导入", f"'{iccid(1)}", "", ""],
        ["3", "已拒绝", "'=cmd|' /C calc'!A0", "ICCID 含有 0-9、A-F 以外的字符", ""],
        ["4", "已跳过", f"'{iccid(1)}", "文件内重复，首次出现在第 2 行", ""],
    ]


async def test_the_result_file_of_an_import_can_be_imported_again(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, storage: Storage
) -> None:
    task = await put_file(card_file(range(5)))
    await handler.process_task(delivery(task.id))
    done = await get_import(pool, task)
    again = await put_file(await storage.get(done.result_key or ""))
    await handler.process_task(delivery(again.id))
    assert (await get_import(pool, again)).skipped == 5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "文件为空"),
        (b"ICCID\n\xff\xff\n", "无法识别文件编码"),
        ("卡号,套餐\n1,2\n".encode(), "找不到 ICCID 列"),
        (b"ICCID,ICCID\n", "多个 ICCID 列"),
        (b"PK\x03\x04rest", "工作簿已损坏"),
    ],
)
async def test_a_file_that_can_never_be_imported_fails_at_once(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, data: bytes, reason: str
) -> None:
    task = await put_file(data)
    with capture_logs() as logs, pytest.raises(SkipRetry, match=reason):
        await handler.process_task(delivery(task.id))
    failed = await get_import(pool, task)
    assert failed.status is ImportStatus.FAILED
    assert reason in (failed.error or "")
    assert logs[-1]["event"] == "导入失败"


async def test_a_missing_or_changed_file_fails_at_once(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, storage: Storage
) -> None:
    missing, changed = await put_file(card_file([1])), await put_file(card_file([2]))
    await storage.delete(missing.file_key)
    await storage.put(changed.file_key, card_file([2])[:-5])
    for task, reason in ((missing, "文件不存在"), (changed, "文件已损坏")):
        with pytest.raises(SkipRetry, match=reason):
            await handler.process_task(delivery(task.id))
        assert (await get_import(pool, task)).status is ImportStatus.FAILED
    assert await count_cards(pool) == 0


async def test_without_storage_the_task_is_put_back_and_nothing_changes(
    pool: asyncpg.Pool, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file([1]))
    with pytest.raises(PutBack, match="对象存储未配置"):
        await CardImportHandler(pool, None, announcements).process_task(delivery(task.id))
    waiting = await get_import(pool, task)
    assert (waiting.status, waiting.waits_for) == (
        ImportStatus.PENDING,
        "对象存储未配置（JUNHONG_STORAGE_URL）",
    )


async def test_an_unreachable_storage_puts_the_task_back(
    pool: asyncpg.Pool,
    handler: CardImportHandler,
    put_file: PutFile,
    announcements: Announcements,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    task = await put_file(card_file([1]))
    dead = open_storage("s3://bucket?endpoint=http://127.0.0.1:1&allow_http=true&region=x")
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(PutBack, match="对象存储暂不可用"):
                await CardImportHandler(pool, dead, announcements).process_task(delivery(task.id))
    told = [entry for entry in logs if entry["event"] == "导入暂停，条件恢复后自动继续"]
    assert [entry["import_id"] for entry in told] == [task.id]
    assert told[0]["reason"].startswith("对象存储暂不可用：")
    assert ((await get_import(pool, task)).waits_for or "").startswith("对象存储暂不可用：")
    await handler.process_task(delivery(task.id))
    done = await get_import(pool, task)
    assert (done.status, done.waits_for) == (ImportStatus.DONE, None)


class BrokenAnnouncements(Announcements):
    """Can't tell Redis."""

    async def cards_created(self, cards: Sequence[Card]) -> None:
        raise RedisConnectionError("Connection refused")


async def test_a_redis_that_is_away_costs_no_retry(
    pool: asyncpg.Pool, storage: Storage, handler: CardImportHandler, put_file: PutFile
) -> None:
    task = await put_file(card_file([1]))
    with pytest.raises(PutBack, match="Redis 暂不可用"):
        await CardImportHandler(pool, storage, BrokenAnnouncements()).process_task(
            delivery(task.id, retried=25, max_retry=25)
        )
    assert (await get_import(pool, task)).waits_for == "Redis 暂不可用：ConnectionError"
    await handler.process_task(delivery(task.id))
    assert (await get_import(pool, task)).status is ImportStatus.DONE


async def test_a_second_delivery_of_a_finished_import_does_nothing(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file(range(5)))
    await handler.process_task(delivery(task.id))
    first = await get_import(pool, task)
    with capture_logs() as logs:
        await handler.process_task(delivery(task.id))
    assert await get_import(pool, task) == first
    assert announcements.calls == 1
    assert logs[-1]["event"] == "导入已结束，忽略这次投递"


async def test_an_import_nobody_knows_is_dropped(handler: CardImportHandler) -> None:
    with capture_logs() as logs:
        await handler.process_task(delivery(4711))
    assert logs[-1]["status"] == "不存在"


async def test_a_failed_announcement_is_made_up_for_by_the_next_run(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file(range(35)))
    for call in (2, 3, 6):  # after the commit of a chunk, in the middle of a re-announcement, and later
        announcements.fail_at_call = call
        with pytest.raises(PutBack):
            await handler.process_task(delivery(task.id))
    await handler.process_task(delivery(task.id))
    done = await get_import(pool, task)
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, 35, 35)
    assert set(announcements.card_ids) == set(await card_ids(pool))
    assert sorted(await rows_of(pool, task)) == list(range(2, 37))


async def test_a_failed_announcement_is_made_up_for_though_the_file_is_gone(
    pool: asyncpg.Pool,
    handler: CardImportHandler,
    put_file: PutFile,
    storage: Storage,
    announcements: Announcements,
) -> None:
    task = await put_file(card_file(range(35)))
    announcements.fail_at_call = 2
    with pytest.raises(PutBack):
        await handler.process_task(delivery(task.id))
    await storage.delete(task.file_key)
    with pytest.raises(SkipRetry, match="文件不存在"):
        await handler.process_task(delivery(task.id))
    assert set(announcements.card_ids) == set(await card_ids(pool))


async def test_a_crash_inside_any_chunk_leaves_no_trace_of_it(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile, announcements: Announcements
) -> None:
    """The database refuses one row for good: its chunk is rolled back whole, the ones before it stay."""
    await pool.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.line_no = 25 THEN RAISE EXCEPTION 'crash'; END IF; RETURN NEW; END $$"
    )
    await pool.execute("CREATE TRIGGER t BEFORE INSERT ON import_row FOR EACH ROW EXECUTE FUNCTION refuse()")
    task = await put_file(card_file(range(35)))
    with pytest.raises(asyncpg.RaiseError):
        await handler.process_task(delivery(task.id))
    half = await get_import(pool, task)
    assert (half.status, half.total, half.next_line) == (ImportStatus.RUNNING, 20, 22)
    assert await count_cards(pool) == len(announcements.card_ids) == 20
    await pool.execute("DROP TRIGGER t ON import_row")
    await handler.process_task(delivery(task.id, retried=1))
    done = await get_import(pool, task)
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, 35, 35)
    assert set(announcements.card_ids) == set(await card_ids(pool))


async def test_the_last_retry_ends_the_import_with_a_reason(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile
) -> None:
    await pool.execute("ALTER TABLE import_row ADD CONSTRAINT broken CHECK (line_no < 0)")
    task = await put_file(card_file([1]))
    with pytest.raises(asyncpg.CheckViolationError):
        await handler.process_task(delivery(task.id, retried=25, max_retry=25))
    failed = await get_import(pool, task)
    assert (failed.status, failed.error) == (ImportStatus.FAILED, "多次重试后仍失败：CheckViolationError")


async def test_stopping_the_worker_ends_no_import_however_often_it_was_tried(
    pool: asyncpg.Pool, handler: CardImportHandler, put_file: PutFile
) -> None:
    task = await put_file(card_file([1]))
    draining = asyncio.Event()
    draining.set()
    with pytest.raises(PutBack, match="进程正在退出"):
        await handler.process_task(delivery(task.id, draining=draining, retried=25, max_retry=25))
    assert (await get_import(pool, task)).status is ImportStatus.RUNNING


class DrainingAnnouncements(Announcements):
    """Sets the draining event when it is told of cards for the ``at_call``-th time."""

    def __init__(self, draining: asyncio.Event, at_call: int) -> None:
        super().__init__()
        self._draining = draining
        self._at_call = at_call

    async def cards_created(self, cards: Sequence[Card]) -> None:
        await super().cards_created(cards)
        if self.calls == self._at_call:
            self._draining.set()


@pytest.mark.parametrize("at_call", [1, 2, 4])
async def test_a_draining_process_stops_at_a_chunk_boundary(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements, at_call: int
) -> None:
    task = await put_file(card_file(range(35)))
    draining = asyncio.Event()
    first = DrainingAnnouncements(draining, at_call)
    with pytest.raises(PutBack, match="进程正在退出"):
        await CardImportHandler(pool, storage, first, chunk_rows=10).process_task(
            delivery(task.id, draining=draining)
        )
    stopped = await get_import(pool, task)
    assert stopped.status is ImportStatus.RUNNING
    assert stopped.total == len(first.card_ids)
    assert stopped.total == min(at_call * 10, 35)
    await CardImportHandler(pool, storage, announcements, chunk_rows=10).process_task(delivery(task.id))
    done = await get_import(pool, task)
    assert (done.status, done.imported) == (ImportStatus.DONE, 35)
    assert {*first.card_ids, *announcements.card_ids} == set(await card_ids(pool))


async def test_two_deliveries_at_once_import_each_row_once(
    pool: asyncpg.Pool, storage: Storage, put_file: PutFile, announcements: Announcements
) -> None:
    task = await put_file(card_file(range(200)))

    async def deliver_until_done() -> None:
        handler = CardImportHandler(pool, storage, announcements, chunk_rows=10)
        while True:
            try:
                await handler.process_task(delivery(task.id))
            except PutBack as put_back:
                assert "同一导入正由另一个进程执行" in put_back.reason  # noqa: PT017 - the verdict's text is the point
                await wait_until(
                    lambda: _is_final(pool, task), description="the other delivery finishes the import"
                )
            else:
                return

    await asyncio.gather(*(deliver_until_done() for _ in range(3)))
    done = await get_import(pool, task)
    assert (done.status, done.total, done.imported) == (ImportStatus.DONE, 200, 200)
    assert sorted(await rows_of(pool, task)) == list(range(2, 202))
    assert set(announcements.card_ids) == set(await card_ids(pool))
    assert await count_cards(pool) == 200


async def _is_final(pool: asyncpg.Pool, task: ImportTask) -> bool:
    return (await get_import(pool, task)).status.is_final
