import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import psutil
import pytest
from tests.cli.import_counter import Counter
from tests.imports.card_files import card_file, iccid
from tests.waiting import wait_until

from junhong_cmp.cards.store import count_cards
from junhong_cmp.imports.store import list_unfinished


@contextlib.asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Accept connections and never say a word; yields the port."""
    held: list[asyncio.StreamWriter] = []

    def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for writer in held:
            writer.transport.abort()


def connected_to(port: int, pid: int) -> bool:
    """Whether the process has a connection to the port."""
    connections = psutil.Process(pid).net_connections("tcp")
    return any(one.raddr[-1:] == (port,) for one in connections)


async def test_a_file_is_imported_and_its_result_told(counter: Counter, tmp_path: Path) -> None:
    data = card_file(range(20)) + f"8.98E+19,\n{iccid(1)},\n".encode()
    async with counter.worker():
        ended = await counter.hand_in(data, "--account", "demo", "--result", str(tmp_path / "copy.csv"))
    assert (ended.code, ended.err) == (0, "")
    done, counts, place = ended.out.splitlines()
    assert done.startswith("导入完成：卡清单.csv（导入编号 ")
    assert counts == "共 22 行：导入 20，跳过 1，拒绝 1，有提醒 0"
    kept = Path(place.removeprefix("结果文件："))
    content = await asyncio.to_thread(kept.read_bytes)
    assert content == await asyncio.to_thread((tmp_path / "copy.csv").read_bytes)
    assert "文件内重复，首次出现在第 3 行" in content.decode("utf-8-sig")
    assert await count_cards(counter.pool) == 20


async def test_json_for_programs_and_the_same_file_again(counter: Counter) -> None:
    async with counter.worker():
        first = orjson.loads((await counter.hand_in(card_file([1, 2]), "-a", "demo", "--json")).out)
    ended = await counter.hand_in(None, "-a", "demo", "--json")
    assert orjson.loads(ended.out) == first
    assert "不再重复导入；以下是当时的结果" in ended.err
    assert (first["status"], first["total"], first["imported"], first["error"]) == ("done", 2, 2, None)
    assert first["result"].endswith(first["result_key"])


async def test_without_waiting_the_worker_goes_on_alone(counter: Counter) -> None:
    ended = await counter.hand_in(card_file([1]), "-a", "demo", "--no-wait")
    assert ended.code == 0
    assert ended.out.startswith("已提交：卡清单.csv")
    assert len(await list_unfinished(counter.pool)) == 1


@pytest.mark.parametrize(
    ("data", "name", "account", "reason"),
    [
        (b"%PDF-1.7", "cards.pdf", "demo", "这是 PDF 文件"),
        (None, "nope.csv", "demo", "文件无法读取"),
        (b"", "empty.csv", "demo", "文件为空"),
        (card_file([1]), "cards.csv", "other", "账号不存在：other"),
    ],
)
async def test_what_is_refused_at_once_exits_1_with_one_sentence(
    counter: Counter, data: bytes | None, name: str, account: str, reason: str
) -> None:
    ended = await counter.hand_in(data, "-a", account, name=name)
    assert (ended.code, ended.out) == (1, "")
    assert reason in ended.err
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err


async def test_a_file_that_fails_in_the_worker_exits_1_with_its_reason(counter: Counter) -> None:
    async with counter.worker():
        ended = await counter.hand_in("卡号\n1064\n".encode(), "-a", "demo")
    assert ended.code == 1
    assert "导入失败：卡清单.csv" in ended.out
    assert "找不到 ICCID 列" in ended.out


async def test_missing_storage_is_a_configuration_error(counter: Counter) -> None:
    for url, reason in (("", "JUNHONG_STORAGE_URL 未设置"), ("memory://", "Worker 看不到")):
        counter.env["JUNHONG_STORAGE_URL"] = url
        ended = await counter.hand_in(card_file([1]), "-a", "demo")
        assert ended.code == 78
        assert reason in ended.err
    counter.env |= {"JUNHONG_STORAGE_URL": "", "JUNHONG_QUEUE_CONCURRENCY": "many"}
    ended = await counter.hand_in(card_file([1]), "-a", "demo")
    assert "JUNHONG_STORAGE_URL 未设置" in ended.err, "told with the other faults, not after them"
    assert "JUNHONG_QUEUE_CONCURRENCY" in ended.err


async def test_unreachable_services_exit_69(counter: Counter) -> None:
    reachable = dict(counter.env)
    counter.env["JUNHONG_POSTGRES_DSN"] = "postgresql://u:canary@127.0.0.1:1/x"
    ended = await counter.hand_in(card_file([1]), "-a", "demo")
    assert (ended.code, "PostgreSQL 无法访问" in ended.err, "canary" in ended.err) == (69, True, False)
    counter.env |= reachable | {"JUNHONG_REDIS_URL": "redis://:canary@127.0.0.1:1/0"}
    ended = await counter.hand_in(None, "-a", "demo")
    assert (ended.code, "Redis 恢复后会自动入队" in ended.err, "canary" in ended.err) == (69, True, False)
    assert len(await list_unfinished(counter.pool)) == 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cards.csv"
    path.write_bytes(card_file(range(5)))
    return path


async def test_a_terminal_sees_a_bar(counter: Counter, file: Path) -> None:
    counter.env["FORCE_COLOR"] = "1"
    async with counter.worker():
        ended = await counter.run("import", str(file), "-a", "demo")
    assert ended.code == 0
    assert "100%" in ended.err
    assert "导入 5 · 跳过 0 · 拒绝 0" in ended.err


async def test_ctrl_c_leaves_the_import_to_the_worker(counter: Counter, file: Path) -> None:
    process = await counter.start_and_submit(file)
    process.send_signal(signal.SIGINT)
    ended = await counter.end(process)
    assert (ended.code, ended.err) == (130, "已停止等待；已提交的导入由 Worker 继续\n")
    assert len(await list_unfinished(counter.pool)) == 1


async def test_ctrl_c_before_anything_was_handed_in_promises_nothing(counter: Counter, file: Path) -> None:
    async with silent_server() as port:
        counter.env["JUNHONG_POSTGRES_DSN"] = f"postgresql://u@127.0.0.1:{port}/db"
        process = await counter.start("import", str(file), "-a", "demo")
        await wait_until(lambda: connected_to(port, process.pid), description="the command connects")
        process.send_signal(signal.SIGINT)
        ended = await counter.end(process)
    assert (ended.code, ended.out, ended.err) == (130, "", "已中断\n")


async def test_a_copy_that_finds_no_room_hides_no_result(counter: Counter) -> None:
    async with counter.worker():
        ended = await counter.hand_in(card_file([1]), "-a", "demo", "--result", "/dev/full")
    assert ended.code == 69
    assert "导入完成" in ended.out
    assert "结果文件无法写入 /dev/full：磁盘已满" in ended.err


async def test_a_copy_to_nowhere_is_refused_before_the_file_is_handed_in(
    counter: Counter, file: Path, tmp_path: Path
) -> None:
    ended = await counter.end(
        await counter.start("import", str(file), "-a", "demo", "--result", str(tmp_path / "absent" / "r.csv"))
    )
    assert (ended.code, ended.out) == (1, "")
    assert f"文件夹 {tmp_path / 'absent'} 不存在，请先建立" in ended.err
    assert await counter.pool.fetchval("SELECT count(*) FROM import_task") == 0


async def test_a_lost_database_connection_is_waited_out(counter: Counter, file: Path) -> None:
    process = await counter.start_and_submit(file)
    cut = await counter.pool.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'junhong-import'"
    )
    assert cut >= 1
    async with counter.worker():
        ended = await counter.end(process)
    assert (ended.code, ended.err) == (0, "")
    assert "导入 5，" in ended.out
