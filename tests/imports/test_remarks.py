import asyncpg
from tests.imports.card_files import PutFile

from junhong_cmp.imports.endings import cancel_import, finish_import
from junhong_cmp.imports.remarks import note_file, note_wait
from junhong_cmp.imports.store import advance_import, find_import, start_import


async def test_a_wait_is_news_once_and_again_after_progress_or_for_another_reason(
    pool: asyncpg.Pool, put_file: PutFile
) -> None:
    task = await put_file(b"ICCID\n")
    assert await note_wait(pool, task.id, "存储暂不可用：第 1 次")
    assert not await note_wait(pool, task.id, "存储暂不可用：第 2 次")
    waiting = await find_import(pool, task.id)
    assert waiting is not None
    assert waiting.waits_for == "存储暂不可用：第 2 次"
    assert await note_wait(pool, task.id, "临时目录已满")
    async with pool.acquire() as conn:
        await start_import(conn, task.id)
        assert not await note_wait(conn, task.id, "临时目录已满")
        await advance_import(conn, task.id, 2, [])
        assert await note_wait(conn, task.id, "临时目录已满")


async def test_what_is_final_waits_for_nothing(pool: asyncpg.Pool, put_file: PutFile) -> None:
    done, cancelled = await put_file(b"ICCID\n"), await put_file(b"ICCID\n\n")
    for task in (done, cancelled):
        assert await note_wait(pool, task.id, "临时目录已满")
    await finish_import(pool, done.id)
    await cancel_import(pool, cancelled.id)
    for task in (done, cancelled):
        assert not await note_wait(pool, task.id, "存储暂不可用")
        final = await find_import(pool, task.id)
        assert final is not None
        assert final.waits_for is None
    assert not await note_wait(pool, 4711, "临时目录已满")


async def test_lines_are_kept_when_notes_come_without_them(pool: asyncpg.Pool, put_file: PutFile) -> None:
    task = await put_file(b"ICCID\n")
    await note_file(pool, task.id, [], 7)
    await note_file(pool, task.id, ["未识别的列已忽略：备注"])
    noted = await find_import(pool, task.id)
    assert noted is not None
    assert (noted.file_lines, noted.notes) == (7, ["未识别的列已忽略：备注"])
