"""Pid records: the right processes are ended, and only those."""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.waiting import wait_until

from junhong_cmp.embedded.pids import PidRecord, end_leftovers, start_moment, write_record

SOON = timedelta(seconds=10)


def _record(folder: Path, name: str, pid: int) -> Path:
    path = folder / f"{name}.pid"
    write_record(path, pid, signal.SIGTERM)
    return path


async def test_a_leftover_is_ended_and_forgotten(tmp_path: Path) -> None:
    left = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    path = _record(tmp_path, "left", left.pid)
    assert await end_leftovers(tmp_path, SOON) == 1
    assert await left.wait() == -signal.SIGTERM
    assert not path.exists()


async def test_a_deaf_leftover_is_killed(tmp_path: Path) -> None:
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    left = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert left.stdout is not None
    await left.stdout.readline()
    _record(tmp_path, "left", left.pid)
    assert await end_leftovers(tmp_path, timedelta(seconds=0.1)) == 1
    assert await left.wait() == -signal.SIGKILL


async def test_a_later_process_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    path = _record(tmp_path, "left", stranger.pid)
    path.write_text(path.read_text().replace(start_moment(stranger.pid) or "", "1"))
    assert await end_leftovers(tmp_path, SOON) == 0
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()


async def test_unreadable_records_are_dropped(tmp_path: Path) -> None:
    for name, text in (("cut", '{"pid": 1'), ("odd", '{"pid": 1, "who": 2}'), ("list", "[1]")):
        (tmp_path / f"{name}.pid").write_text(text)
    assert await end_leftovers(tmp_path, SOON) == 0
    assert not any((tmp_path / f"{name}.pid").exists() for name in ("cut", "odd", "list"))


async def test_a_process_that_is_over_gets_no_record(tmp_path: Path) -> None:
    over = await asyncio.create_subprocess_exec("/bin/true")
    await over.wait()
    assert not _record(tmp_path, "over", over.pid).exists()
    assert not PidRecord(over.pid, "1", signal.SIGTERM).alive()


def test_the_start_moment_of_a_process_does_not_change() -> None:
    assert start_moment(os.getpid()) == start_moment(os.getpid()) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists what has ended")
async def test_one_killed_a_moment_ago_is_waited_for_until_it_is_listed_no_more(tmp_path: Path) -> None:
    left = await asyncio.to_thread(subprocess.Popen, ["/bin/sleep", "60"])
    path = _record(tmp_path, "left", left.pid)
    left.kill()  # nobody has taken note of its end yet
    await wait_until(lambda: start_moment(left.pid) is None, description="it is over")
    ending = asyncio.create_task(end_leftovers(tmp_path, SOON))
    done, _ = await asyncio.wait({ending}, timeout=0.2)
    assert not done
    await asyncio.to_thread(left.wait)
    assert await ending == 0
    assert not path.exists()
