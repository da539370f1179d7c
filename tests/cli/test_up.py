"""``junhong up`` as its users run it: real processes from the first line to nothing left behind."""

import signal
from pathlib import Path

import psutil
import pytest
from tests.up_process import left_of, up

from junhong_cmp.embedded.demo_cards import operator_file
from junhong_cmp.embedded.pids import start_moment

CHILDREN = {"redis", "postgres", "simulator", "worker"}
FEW = ("--cards", "200")  # polled every five seconds


async def test_a_bounded_run_imports_polls_and_ends_and_the_next_one_continues(data_folder: Path) -> None:
    data_dir = data_folder / "data"
    async with up(data_dir, *FEW, "--for", "3s", "--json") as first:
        assert await first.finish() == 0, first.err
    summary = first.summary
    assert summary["imported"] == summary["cards"] == 200
    assert summary["rejected"] == summary["skipped"] == summary["failed"] == 0
    assert summary["polled"] > 0
    assert summary["lag_p95_ms"] is not None
    assert summary["exit_reason"] == "for_elapsed"
    assert 3 <= summary["duration_s"] < 6
    assert left_of(data_dir) == []

    async with up(data_dir, *FEW, "--for", "1s", "--json") as second:
        assert await second.finish() == 0, second.err
    assert "已在先前导入" in second.err
    assert second.summary["imported"] == second.summary["cards"] == 200
    assert second.summary["polled"] > 0
    assert second.summary["failed"] == 0


async def test_the_example_file_is_imported_row_by_row(data_folder: Path) -> None:
    example = operator_file()
    async with up(data_folder / "data", "--for", "2s") as run:
        assert await run.finish() == 0, run.err
    assert "启动报告" in run.out
    counts = f"成功 {example.cards}，跳过 {example.duplicates}，拒绝 {example.broken}"
    assert counts in run.out
    assert "失败 0" in run.out.splitlines()[-2]
    assert run.err == ""


async def test_a_second_run_on_the_folder_is_refused_and_ctrl_c_ends_the_first(data_folder: Path) -> None:
    data_dir = data_folder / "data"
    async with up(data_dir, *FEW, "--json") as first:
        await first.polls()
        assert set(first.pids()) == CHILDREN
        async with up(data_dir, *FEW, "--for", "1s") as second:
            assert await second.finish(10) == 69
            assert f"正被另一个 junhong up 使用（进程 {first.process.pid}）" in second.err
            assert len(second.err.splitlines()) == 1
            assert second.out == "", "nothing is announced that cannot begin"
            first.process.send_signal(signal.SIGINT)  # leaving the inner block waits for all to be gone
            assert await first.finish(20) == 0
    assert first.summary["exit_reason"] == "signal"
    assert first.summary["failed"] == 0
    assert first.pids() == {}


@pytest.mark.parametrize("moment", ["正在启动", "启动报告"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_while_starting_ends_cleanly(
    data_folder: Path, moment: str, number: signal.Signals
) -> None:
    async with up(data_folder / "data", *FEW) as run:
        await run.says(moment)
        run.process.send_signal(number)
        assert await run.finish(15) == 0, run.err
        assert left_of(data_folder / "data") == []


async def test_a_killed_run_takes_its_children_along_and_the_next_one_works(data_folder: Path) -> None:
    data_dir = data_folder / "data"
    async with up(data_dir, *FEW) as run:
        await run.polls()
        children = run.pids()
        run.process.kill()
        await run.finish()
        async with up(data_dir, *FEW, "--for", "1s", "--json") as again:
            assert await again.finish() == 0, again.err
        assert again.summary["imported"] == again.summary["cards"] == 200
    assert {name for name, pid in children.items() if start_moment(pid) is not None} == set()


@pytest.mark.parametrize("victim", sorted(CHILDREN))
async def test_a_child_that_dies_ends_the_run_with_its_last_words(data_folder: Path, victim: str) -> None:
    async with up(data_folder / "data", *FEW, "--json") as run:
        await run.polls()
        psutil.Process(run.pids()[victim]).kill()
        assert await run.finish(40) == 70
        assert f"子进程 {victim} 意外结束（被信号 9 终止）" in run.err
        assert run.summary["exit_reason"] == "process_died"
        assert left_of(data_folder / "data") == []


async def test_an_unusable_folder_is_one_clear_error(data_folder: Path) -> None:
    (data_folder / "file").touch()
    async with up(data_folder / "file" / "data", "--for", "1s") as run:
        assert await run.finish(10) == 78
    assert "路径中有一段不是目录" in run.err
    assert "Traceback" not in run.err
    assert run.out == "", "nothing is announced that cannot begin"
    async with up(Path("/proc/junhong"), "--for", "1s") as run:
        assert await run.finish(10) == 78
    assert "数据目录 /proc/junhong 不可用：该处不能建立目录" in run.err
    assert run.out == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--carriers", "onelink,nobody"), "--carriers 的值无效：没有名为“nobody”的驱动"),
        (("--carriers", "onelink,unicom,ctcc", "--cards", "2"), "--cards 的值无效：2 张卡不够分给 3 个账号"),
    ],
)
async def test_carriers_that_cannot_be_run_are_refused_before_anything_starts(
    data_folder: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    async with up(data_folder / "data", *arguments) as run:
        assert await run.finish(10) == 2
    assert complaint in run.err
    assert not (data_folder / "data").exists()


async def test_a_wrong_duration_is_refused_before_anything_starts(data_folder: Path) -> None:
    async with up(data_folder / "data", "--for", "soon") as run:
        assert await run.finish(10) == 2
    assert "soon" in run.err
    assert not (data_folder / "data").exists()


async def test_a_log_that_cannot_be_there_is_refused_before_anything_starts(data_folder: Path) -> None:
    log = data_folder / "absent" / "requests.jsonl"
    async with up(data_folder / "data", "--simulator-log", str(log)) as run:
        assert await run.finish(10) == 1
    assert f"--simulator-log 无法写入 {log}：文件夹 {log.parent} 不存在" in run.err
    assert not (data_folder / "data").exists()
