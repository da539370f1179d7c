"""``junhong up`` as its users run it: real processes from the first line to nothing left behind."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.waiting import wait_until
from tests.worker_process import COMMAND, environment

from junhong_cmp.embedded.demo_cards import operator_file
from junhong_cmp.embedded.pids import start_moment

CHILDREN = {"redis", "postgres", "simulator", "worker"}
FEW = ("--cards", "200")  # polled every five seconds


class UpProcess:
    """One ``junhong up`` with what it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process, data_dir: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self.out = ""
        self.err = ""
        self._readers = [asyncio.create_task(self._read(name)) for name in ("out", "err")]

    async def _read(self, name: str) -> None:
        stream = self.process.stdout if name == "out" else self.process.stderr
        assert stream is not None
        while chunk := await stream.readline():
            setattr(self, name, getattr(self, name) + chunk.decode())

    async def finish(self, limit: float = 60) -> int:
        async with asyncio.timeout(limit):
            await asyncio.gather(*self._readers)
            return await self.process.wait()

    async def says(self, text: str, limit: float = 60) -> None:
        await wait_until(
            lambda: text in self.out + self.err or self.process.returncode is not None,
            timeout=limit,
            description=f"up says {text}",
        )
        assert text in self.out + self.err, self.err

    async def polls(self) -> None:
        await self.says("滞后 p95")

    def pids(self) -> dict[str, int]:
        """Pids of the children that run now, by name."""
        records = (self.data_dir / "pids").glob("*.pid")
        return {record.stem: json.loads(record.read_text())["pid"] for record in records}

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


@asynccontextmanager
async def up(data_dir: Path, *arguments: str) -> AsyncIterator[UpProcess]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "up",
        "--data-dir",
        str(data_dir),
        *arguments,
        env=environment(),
        cwd="/",  # no `.env` there
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    run = UpProcess(process, data_dir)
    try:
        yield run
    finally:
        if process.returncode is None:
            process.kill()
        await run.finish()
        await wait_until(lambda: not left_of(data_dir), timeout=30, description="nothing of the run is left")


def left_of(data_dir: Path) -> list[str]:
    """Processes that work in the data folder, by their arguments or their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                known = [*process.cmdline(), *process.environ().values()]
                found += [str(process.pid)] if any(str(data_dir) in text for text in known) else []
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


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


async def test_a_wrong_duration_is_refused_before_anything_starts(data_folder: Path) -> None:
    async with up(data_folder / "data", "--for", "soon") as run:
        assert await run.finish(10) == 2
    assert "soon" in run.err
    assert not (data_folder / "data").exists()
