"""A hanging process is ended in time."""

import subprocess
import sys
import time

from tests.worker_process import ROOT, environment

SCRIPT = """
import sys, threading, time
from datetime import timedelta
from junhong_cmp.errors import ExitCode
from junhong_cmp.worker.exit_guard import ExitGuard
guard = ExitGuard()
guard.arm(timedelta(seconds=0.3), ExitCode.DEPENDENCY_UNAVAILABLE)
{then}
"""


def outcome(then: str) -> int:
    command = [sys.executable, "-c", SCRIPT.format(then=then)]
    return subprocess.run(
        command, env=environment(), cwd=ROOT, timeout=30, check=False, capture_output=True
    ).returncode


def test_a_hanging_process_ends_with_the_given_code() -> None:
    began = time.monotonic()
    assert outcome("time.sleep(30)") == 69
    assert outcome("threading.Thread(target=time.sleep, args=(30,)).start()") == 69
    assert time.monotonic() - began < 15


def test_a_process_that_ends_by_itself_keeps_its_code() -> None:
    assert outcome("sys.exit(3)") == 3


def test_disarmed_it_does_nothing() -> None:
    assert outcome("guard.disarm(); time.sleep(0.6); sys.exit(4)") == 4
