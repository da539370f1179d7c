import asyncio
from pathlib import Path

import orjson
import pytest
from tests.cli.import_counter import Counter
from tests.imports.card_files import Announcements, card_file, delivery

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.imports.handler import CardImportHandler
from junhong_cmp.imports.remarks import note_wait
from junhong_cmp.imports.store import list_unfinished
from junhong_cmp.storage.store import open_storage


async def handed_in(counter: Counter, count: int) -> str:
    """Hand a file of ``count`` cards in and return the import's id."""
    ended = await counter.hand_in(card_file(range(count)), "-a", "demo", "--no-watch", "--json")
    return str(orjson.loads(ended.out)["id"])


async def test_a_waiting_import_is_cancelled_and_not_twice(counter: Counter) -> None:
    import_id = await handed_in(counter, 3)
    ended = await counter.run("import", "cancel", import_id)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"导入 {import_id} 已取消：处理到第 0 行，已导入的 0 张卡保留，其余未处理\n"
    ended = await counter.run("import", "cancel", import_id)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"错误：导入 {import_id} 已结束（已取消），无法取消\n"
    assert await list_unfinished(counter.pool) == {}


async def test_watching_in_a_pipe_prints_lines_and_ends_with_the_summary(counter: Counter) -> None:
    import_id = await handed_in(counter, 5)
    watching = await counter.start("import", "watch", import_id)
    async with counter.worker():
        ended = await counter.end(watching)
    assert ended.code == 0
    assert ended.err.splitlines()[0].startswith(("等待 Worker：0% · ", "导入中：", "完成：100%"))
    assert ended.out.splitlines()[1] == "共 5 行：导入 5，跳过 0，拒绝 0，有提醒 0"
    again = await counter.run("import", "watch", import_id, "--json")
    assert orjson.loads(again.out)["imported"] == 5


async def test_the_result_file_of_an_import_that_is_over_can_be_fetched(counter: Counter) -> None:
    import_id = await handed_in(counter, 2)
    async with counter.worker():
        pass
    copy = counter.folder / "结果.csv"
    ended = await counter.run("import", "watch", import_id, "--result", str(copy))
    kept = Path(ended.out.splitlines()[-1].removeprefix("结果文件："))
    assert await asyncio.to_thread(copy.read_bytes) == await asyncio.to_thread(kept.read_bytes)
    ended = await counter.run("import", "watch", import_id, "--result", str(counter.folder / "no" / "r.csv"))
    assert (ended.code, "--result 无法写入" in ended.err) == (1, True)

    counter.env["JUNHONG_STORAGE_URL"] = ""
    told = (await counter.run("import", "watch", import_id)).out.splitlines()[-1]
    assert told.startswith("结果文件在对象存储中，键为 ")
    assert f"junhong import watch {import_id} 显示其位置，加 --result 文件 另存一份" in told
    for_programs = orjson.loads((await counter.run("import", "watch", import_id, "--json")).out)
    assert for_programs["result"] is None
    assert str(kept).endswith(for_programs["result_key"])
    ended = await counter.run("import", "watch", import_id, "--result", str(copy))
    assert (ended.code, "JUNHONG_STORAGE_URL 未设置" in ended.err) == (78, True)


async def test_who_watches_a_cancelled_import_learns_of_it(counter: Counter) -> None:
    import_id = await handed_in(counter, 5)
    watching = await counter.start("import", "watch", import_id)
    await counter.run("import", "cancel", import_id)
    ended = await counter.end(watching)
    assert ended.code == 1
    assert "导入已取消：卡清单.csv" in ended.out


async def test_the_result_file_of_a_cancelled_import_is_waited_for(counter: Counter) -> None:
    import_id = await handed_in(counter, 5)
    announcements = Announcements()
    announcements.fail_at_call = 1  # the run ends behind its first chunk
    handler = CardImportHandler(
        counter.pool, open_storage(counter.env["JUNHONG_STORAGE_URL"]), announcements, chunk_rows=2
    )
    with pytest.raises(PutBack):
        await handler.process_task(delivery(int(import_id)))
    ended = await counter.run("import", "cancel", import_id)
    assert ended.out == f"导入 {import_id} 已取消：处理到第 3 行，已导入的 2 张卡保留，其余未处理\n"
    copy = counter.folder / "结果.csv"
    watching = await counter.start("import", "watch", import_id, "--result", str(copy))
    assert watching.stderr is not None
    assert (await watching.stderr.readline()).decode().startswith("已取消：")
    await handler.process_task(delivery(int(import_id)))
    ended = await counter.end(watching)
    assert ended.code == 1
    assert "结果文件：" in ended.out
    assert len((await asyncio.to_thread(copy.read_text, "utf-8-sig")).splitlines()) == 1 + 2


async def test_the_latest_imports_are_listed(counter: Counter) -> None:
    first = await handed_in(counter, 1)
    storage = open_storage(counter.env["JUNHONG_STORAGE_URL"])
    await CardImportHandler(counter.pool, storage, Announcements()).process_task(delivery(int(first)))
    second = await handed_in(counter, 2)
    ended = await counter.run("import", "ls")
    lines = [line for line in ended.out.splitlines() if "卡清单.csv" in line]
    assert [line.split()[1] for line in lines] == [second, first]
    assert "等待 Worker" in lines[0]
    assert "完成" in lines[1]
    listed = orjson.loads((await counter.run("import", "ls", "--json", "-n", "1")).out)
    assert [(one["id"], one["status"]) for one in listed] == [(int(second), "pending")]


async def test_what_an_import_waits_for_is_shown_wherever_it_is(counter: Counter) -> None:
    import_id = await handed_in(counter, 3)
    reason = "本机临时目录无法写入：/tmp：磁盘已满"
    await note_wait(counter.pool, int(import_id), reason)
    listed = (await counter.run("import", "ls")).out
    (line,) = [line for line in listed.splitlines() if "卡清单.csv" in line]
    assert "暂停" in line
    assert "本机临时目录无法写入" in listed
    assert orjson.loads((await counter.run("import", "ls", "--json")).out)[0]["waits_for"] == reason
    watching = await counter.start("import", "watch", import_id)
    assert watching.stderr is not None
    lines = [(await watching.stderr.readline()).decode() for _ in range(2)]
    assert lines == ["暂停：0% · 导入 0 · 跳过 0 · 拒绝 0\n", f"导入暂停：{reason}；条件恢复后自动继续\n"]
    async with counter.worker():
        ended = await counter.end(watching)
    assert reason not in ended.err
    assert "导入完成" in ended.out


@pytest.mark.parametrize("command", ["cancel", "watch"])
async def test_an_import_nobody_knows_is_said(counter: Counter, command: str) -> None:
    ended = await counter.run("import", command, "4711")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "错误：没有导入 4711；junhong import ls 列出最近的导入\n"


async def test_a_file_named_like_a_command_is_given_with_its_folder(counter: Counter, tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "cancel").write_bytes, card_file([1]))
    ended = await counter.run("import", "./cancel", "-a", "demo", "--no-watch")
    assert (ended.code, ended.err) == (0, "")
