"""What a signal does in each phase, in a process of its own."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from tests.worker_process import ROOT, environment

PRELUDE = """
import os, signal, sys, time
from junhong_cmp.cli.signals import StopSignals
signals = StopSignals()
signals.install()
"""
HEAR = "signals.listen(lambda number: print('heard', number.name, flush=True))\n"
TERM = "os.kill(os.getpid(), signal.SIGTERM)\n"
INT = "os.kill(os.getpid(), signal.SIGINT)\n"


def ended(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + script + "print('still here', flush=True)\nsys.exit(7)"],
        env=environment(**variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def outcome(script: str) -> tuple[int, str]:
    result = ended(script)
    return result.returncode, result.stdout


@pytest.mark.parametrize("send", [TERM, INT])
def test_while_nothing_is_open_it_ends_at_once_and_cleanly(send: str) -> None:
    assert outcome(send) == (0, "")


@pytest.mark.parametrize(("send", "name"), [(TERM, "SIGTERM"), (INT, "SIGINT")])
def test_an_end_before_the_log_is_set_up_is_told_in_one_line_of_it(send: str, name: str) -> None:
    record = json.loads(ended(send).stderr)
    assert (record["level"], record["signal"]) == ("info", name)
    assert record["event"] == "尚未启动即收到退出信号，直接退出"
    assert datetime.now(UTC) - datetime.fromisoformat(record["time"]) < timedelta(minutes=1)
    plain = ended(send, JUNHONG_LOG_FORMAT="console").stderr
    assert plain.endswith(f"Z 尚未启动即收到退出信号，直接退出 signal={name}\n")


def test_nobody_who_hears_of_it_changes_nothing() -> None:
    assert outcome("os.close(2)\n" + TERM) == (0, "")


def test_once_somebody_listens_they_are_told() -> None:
    assert outcome(HEAR + TERM) == (7, "heard SIGTERM\nstill here\n")


@pytest.mark.parametrize(
    ("first", "second", "code"), [(TERM, TERM, 143), (TERM, INT, 130), (INT, TERM, 143), (INT, INT, 130)]
)
def test_the_second_signal_ends_at_once(first: str, second: str, code: int) -> None:
    assert outcome(HEAR + first + second)[0] == code


def test_when_all_is_done_the_exit_code_stands() -> None:
    assert outcome(HEAR + "signals.finish()\n" + TERM) == (7, "still here\n")


def test_other_commands_get_the_usual_meaning_back() -> None:
    assert outcome("signals.restore()\n" + TERM)[0] == -signal.SIGTERM
    interrupted = (
        "signals.restore()\ntry:\n    " + INT + "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    assert outcome("signals.restore()\n" + interrupted) == (7, "interrupted\nstill here\n")


def test_a_blocked_import_is_interrupted() -> None:
    """Nothing may be caught on the way out: an import that swallows errors must not swallow the signal."""
    swallow = "try:\n    " + TERM + "except BaseException:\n    print('swallowed', flush=True)\n"
    assert outcome(swallow) == (0, "")
