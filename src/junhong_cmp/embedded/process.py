"""Child processes that never outlive their parent and can be awaited from any event loop."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from junhong_cmp.embedded.account import Account
from junhong_cmp.embedded.pids import write_record

_LAUNCHER: Final = Path(__file__).with_name("launch.py")
_LOG_ROTATE_BYTES: Final = 10 * 1024 * 1024
_LOG_TAIL_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """What to run and how it ends.

    ``arguments`` starts with the absolute path of the program. ``stop_signal`` asks it to end in good order;
    the kernel sends the same signal when this process dies. ``account`` None keeps the current user;
    ``alias`` is the uid the program takes itself for.
    ``environment`` None hands the parent's environment down. ``pid_path`` holds a record of the process while
    it runs, by which the next run finds one that was left behind.
    """

    name: str
    arguments: Sequence[str]
    log_path: Path
    working_folder: Path
    pid_path: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    account: Account | None = None
    alias: int | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)  # may hold secrets


class ChildProcess:
    """A child process runs one program in a session of its own and reports its end once.

    A session of its own keeps a terminal's Ctrl-C away from the child: the parent decides the stop order.
    Its end is a plain ``Future`` completed by a watcher thread, so it may be awaited from whatever event loop
    is running; asyncio's own subprocesses die with the loop that started them.
    """

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self._popen: subprocess.Popen[bytes] | None = None
        self._exit: Future[int] = Future()
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """Process id, or None before the start."""
        return None if self._popen is None else self._popen.pid

    @property
    def running(self) -> bool:
        """Whether the program has been started and has not ended yet."""
        return self._popen is not None and not self._exit.done()

    @property
    def exit_code(self) -> int | None:
        """Exit code (minus the signal's number when killed by one), or None while running."""
        return self._exit.result() if self._exit.done() else None

    def start(self) -> None:
        """Start the program; its output goes to the log file, appended.

        Raises:
            RuntimeError: outside the main thread, whose end the kernel would take for the parent's death.
            OSError: the interpreter or the log file is not usable.

        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("子进程只能从主线程启动：父线程结束会被内核当作父进程退出")
        rotate_log(self.spec.log_path)
        with self.spec.log_path.open("ab") as log_file:
            self._log_start = log_file.tell()
            self._popen = subprocess.Popen(  # noqa: S603 - program paths come from our wheels, never from input
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                cwd=self.spec.working_folder,
                env=None if self.spec.environment is None else dict(self.spec.environment),
                start_new_session=True,
            )
        if self.spec.pid_path is not None:
            write_record(self.spec.pid_path, self._popen.pid, self.spec.stop_signal)
        self._exit.set_running_or_notify_cancel()  # a cancelled waiter must not cancel the fact of the exit
        threading.Thread(
            target=self._watch, args=(self._popen,), name=f"watch-{self.spec.name}", daemon=True
        ).start()

    async def wait(self) -> int:
        """Return the exit code once the program has ended."""
        return await asyncio.wrap_future(self._exit)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program if it is still running."""
        if self._popen is not None and self.running:
            self._popen.send_signal(number)

    async def stop(self, timeout: timedelta) -> int | None:  # noqa: ASYNC109 - ends in SIGKILL, not in an error
        """Ask the program to end; kill it and its session after ``timeout``. Returns the exit code."""
        if self._popen is None:
            return None
        self.send_signal(self.spec.stop_signal)
        return await self.run_out(timeout)

    async def run_out(self, limit: timedelta) -> int | None:
        """Wait for the program to end by itself; kill its session after ``limit``. Returns the exit code."""
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await self.wait()
        except TimeoutError:
            return await self.kill()

    async def kill(self) -> int | None:
        """End the program and everything in its session at once. Returns the exit code."""
        if self._popen is None:
            return None
        if self.running:
            try:
                os.killpg(self._popen.pid, signal.SIGKILL)
            except (
                ProcessLookupError,
                PermissionError,
            ):  # just gone, or no leader yet
                self._popen.kill()
        return await self.wait()

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines this program wrote to its log, for the error that reports its death."""
        try:
            with self.spec.log_path.open("rb") as log_file:
                log_file.seek(max(self._log_start, self.spec.log_path.stat().st_size - _LOG_TAIL_BYTES))
                text = log_file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _command(self) -> list[str]:
        uid, gid = (-1, -1) if self.spec.account is None else (self.spec.account.uid, self.spec.account.gid)
        prefix = [sys.executable, "-I", "-S", str(_LAUNCHER), str(int(self.spec.stop_signal))]
        alias = -1 if self.spec.alias is None else self.spec.alias
        return [*prefix, str(os.getpid()), str(uid), str(gid), str(alias), "--", *self.spec.arguments]

    def _watch(self, popen: subprocess.Popen[bytes]) -> None:
        code = popen.wait()
        if self.spec.pid_path is not None:
            self.spec.pid_path.unlink(missing_ok=True)
        self._exit.set_result(code)


def rotate_log(path: Path) -> None:
    """Put a log of more than 10 MiB aside, in place of the one put aside before; done at a start only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_ROTATE_BYTES:
        path.replace(path.with_suffix(path.suffix + ".1"))
