"""Child processes: awaited from any loop, ended with their session, never outliving the parent."""

import asyncio
import json
import os
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from tests.waiting import wait_until

from junhong_cmp.embedded.account import unprivileged_account
from junhong_cmp.embedded.pids import start_moment
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec, rotate_log

SOON = timedelta(seconds=10)
AT_ONCE = timedelta(0)
HAS_A_CHILD = "import subprocess,sys; p=subprocess.Popen(['sleep','60']); print(p.pid,flush=True); p.wait()"
STARTS_ONE = """
import sys, time
from pathlib import Path
from junhong_cmp.embedded.process import ChildProcess, ProcessSpec
child = ChildProcess(ProcessSpec(name="c", arguments=["/bin/sleep", "60"], log_path=Path(sys.argv[1]),
                                 working_folder=Path("/")))
child.start()
print(child.pid, flush=True)
time.sleep(60)
"""


def spec(folder: Path, *arguments: str, **changes: object) -> ProcessSpec:
    values: dict[str, object] = {"name": "child", "log_path": folder / "child.log", "working_folder": folder}
    return ProcessSpec(arguments=arguments, **{**values, **changes})  # type: ignore[arg-type]  # plain test values


def python(folder: Path, code: str, **changes: object) -> ProcessSpec:
    return spec(folder, sys.executable, "-c", code, **changes)


async def test_output_goes_to_the_log_and_the_exit_code_is_told(tmp_path: Path) -> None:
    child = ChildProcess(python(tmp_path, "print('one'); print('two'); raise SystemExit(3)"))
    assert (child.pid, child.running, child.exit_code, child.log_tail()) == (None, False, None, "")
    child.start()
    assert child.running
    assert await child.wait() == 3
    assert (child.running, child.exit_code) == (False, 3)
    assert child.log_tail(1) == "two"


async def test_the_tail_holds_nothing_of_an_earlier_run(tmp_path: Path) -> None:
    for word in ("earlier", "later"):
        child = ChildProcess(spec(tmp_path, "/bin/echo", word))
        child.start()
        await child.wait()
        assert child.log_tail() == word


@pytest.mark.parametrize("own", [signal.SIG_DFL, signal.SIG_IGN])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_stop_asks_with_the_stop_signal_whatever_the_parent_does_with_it(
    number: signal.Signals, own: signal.Handlers, tmp_path: Path
) -> None:
    child = ChildProcess(spec(tmp_path, "/bin/sleep", "60", stop_signal=number))
    before = signal.signal(number, own)  # a shell ignores SIGINT for what it runs with "&"
    try:
        child.start()
    finally:
        signal.signal(number, before)
    process = psutil.Process(child.pid)
    await wait_until(lambda: process.cmdline()[:1] == ["/bin/sleep"], description="the program itself runs")
    assert await child.stop(SOON) == -number


async def test_a_child_that_does_not_listen_is_killed_with_everything_in_its_session(tmp_path: Path) -> None:
    child = ChildProcess(
        python(tmp_path, HAS_A_CHILD.replace("p=", "import signal;signal.signal(15,signal.SIG_IGN);p="))
    )
    child.start()
    await wait_until(lambda: child.log_tail().strip().isdigit(), description="grandchild started")
    grandchild = int(child.log_tail())
    assert await child.stop(AT_ONCE) == -signal.SIGKILL
    await wait_until(lambda: start_moment(grandchild) is None, description="grandchild ended too")


async def test_an_end_seen_by_two_loops_is_one_end(tmp_path: Path) -> None:
    child = ChildProcess(spec(tmp_path, "/bin/sleep", "60"))
    child.start()
    elsewhere = asyncio.create_task(asyncio.to_thread(asyncio.run, child.wait()))
    impatient = asyncio.create_task(child.wait())
    await asyncio.sleep(0)
    impatient.cancel()  # must not cancel the fact for the others
    assert await child.kill() == -signal.SIGKILL
    assert await elsewhere == -signal.SIGKILL


async def test_stop_and_kill_before_the_start_do_nothing(tmp_path: Path) -> None:
    child = ChildProcess(spec(tmp_path, "/bin/true"))
    assert await child.stop(SOON) is None
    assert await child.kill() is None


async def test_children_start_from_the_main_thread_only(tmp_path: Path) -> None:
    child = ChildProcess(spec(tmp_path, "/bin/true"))
    with pytest.raises(RuntimeError, match="主线程"):
        await asyncio.to_thread(child.start)
    assert threading.current_thread() is threading.main_thread()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel signals orphans on Linux only")
async def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STARTS_ONE, str(tmp_path / "log"), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert start_moment(child) is not None
    parent.kill()
    await parent.wait()
    await wait_until(lambda: start_moment(child) is None, description="the child follows its parent")


async def test_the_child_has_a_session_of_its_own(tmp_path: Path) -> None:
    child = ChildProcess(spec(tmp_path, "/bin/sleep", "60"))
    child.start()
    assert child.pid is not None
    assert os.getsid(child.pid) == child.pid
    await child.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_root_becomes_the_account_without_its_groups(data_folder: Path) -> None:
    account = unprivileged_account()
    assert account is not None
    code = "import os; print(os.getuid(), os.getgid(), os.getgroups())"
    child = ChildProcess(spec(data_folder, "/usr/bin/env", "python3", "-c", code, account=account))
    child.start()
    await child.wait()
    assert child.log_tail() == f"{account.uid} {account.gid} []"


async def test_the_pid_record_is_there_while_the_child_runs(tmp_path: Path) -> None:
    record = tmp_path / "pids" / "child.pid"
    child = ChildProcess(spec(tmp_path, "/bin/sleep", "60", pid_path=record))
    child.start()
    assert json.loads(record.read_text())["pid"] == child.pid
    await child.kill()
    assert not record.exists()


async def test_the_environment_is_the_one_given(tmp_path: Path) -> None:
    child = ChildProcess(python(tmp_path, "import os; print(os.environ['A'])", environment={"A": "b"}))
    child.start()
    await child.wait()
    assert child.log_tail() == "b"
    assert "'b'" not in repr(child.spec)


def test_a_large_log_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    rotate_log(log)
    assert not log.exists()
    assert (tmp_path / "child.log.1").stat().st_size > 10 * 1024 * 1024
    rotate_log(log)  # nothing there: nothing to do
