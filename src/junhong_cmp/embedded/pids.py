"""Pid records: what an earlier run left running is found and ended before the next one starts."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

log = structlog.stdlib.get_logger(__name__)

_POLL_S: Final = 0.02
_LINGER_LIMIT: Final = timedelta(seconds=10)
_OVER: Final = frozenset({"Z", "X"})
_STARTED: Final = 19


@dataclass(frozen=True, slots=True)
class PidRecord:
    """A process, told apart from a later one that was given the same pid by the moment it started."""

    pid: int
    started: str
    stop_signal: int

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return start_moment(self.pid) == self.started

    def lingers(self) -> bool:
        """Whether it has ended but is listed still, for nobody has taken note of its end (a zombie)."""
        status = _status(self.pid) if sys.platform == "linux" else None
        return status is not None and status[0] in _OVER and status[_STARTED] == self.started

    def send(self, number: int) -> None:
        """Send a signal unless the process has gone meanwhile."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def start_moment(pid: int) -> str | None:
    """Return an opaque mark of when a process started, or None if it does not run (a zombie does not)."""
    if sys.platform == "linux":
        status = _status(pid)
        return None if status is None or status[0] in _OVER else status[_STARTED]
    answer = subprocess.run(  # noqa: S603 - fixed program, numeric argument
        ["/bin/ps", "-p", str(pid), "-o", "lstart="], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or None


def _status(pid: int) -> list[str] | None:
    """Return what Linux lists of a process behind its name, None if it lists none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return status.rpartition(")")[2].split()  # the name before it may hold spaces and parentheses


def write_record(path: Path, pid: int, stop_signal: int) -> None:
    """Remember a process that has just been started."""
    started = start_moment(pid)
    if started is not None:  # None: it is over already
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(PidRecord(pid, started, stop_signal))), encoding="utf-8")


async def end_leftovers(folder: Path, limit: timedelta) -> int:
    """End every recorded process still running, politely until ``limit``, then by force. Returns how many.

    One that was killed a moment ago is waited for until the system lists it no more: as long as it does,
    PostgreSQL takes it for a running server.
    """
    recorded = _recorded(folder)
    records = {name: record for name, record in recorded.items() if record.alive()}
    for name, record in records.items():
        log.warning("发现上次运行遗留的进程，正在结束", process=name, pid=record.pid)
        record.send(record.stop_signal)
    if not await _ended(records.values(), limit):
        for record in records.values():
            record.send(signal.SIGKILL)
        await _ended(records.values(), limit)
    await _no_more(lambda: any(record.lingers() for record in recorded.values()), _LINGER_LIMIT)
    _forget(folder)
    return len(records)


def _recorded(folder: Path) -> dict[str, PidRecord]:
    records = {path.stem: _read(path) for path in sorted(folder.glob("*.pid"))}
    return {name: record for name, record in records.items() if record is not None}


def _forget(folder: Path) -> None:
    for path in folder.glob("*.pid"):
        path.unlink(missing_ok=True)


def _read(path: Path) -> PidRecord | None:
    try:
        return PidRecord(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # cut short by a crash: nothing usable in it
        return None


async def _ended(records: Collection[PidRecord], limit: timedelta) -> bool:
    return await _no_more(lambda: any(record.alive() for record in records), limit)


async def _no_more(lasts: Callable[[], bool], limit: timedelta) -> bool:
    """Wait until something lasts no more; False if it still does at the limit."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit.total_seconds()
    while lasts():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True
