"""The programs that are measured: ours and Go's, started and stopped alike."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from asynq_bench.redis_server import MeasuredRedis

BENCHMARKS = Path(__file__).parents[1]
_STOP_LIMIT_S = 15.0


class MissingGoError(Exception):
    """Go is not installed, or its program does not build."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender is a program with the subcommands of ``ours.py``."""

    name: str
    command: tuple[str, ...]
    takes_url: bool

    def call(self, redis: MeasuredRedis, subcommand: str, *numbers: int) -> list[str]:
        """Return the command line of a subcommand."""
        where = redis.url if self.takes_url else redis.address
        return [*self.command, subcommand, where, *map(str, numbers)]

    def seconds(self, redis: MeasuredRedis, subcommand: str, *numbers: int) -> float:
        """Run a subcommand that times itself and return what it prints."""
        command = self.call(redis, subcommand, *numbers)
        return float(subprocess.run(command, cwd=BENCHMARKS, check=True, stdout=subprocess.PIPE).stdout)


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A running worker is one process whose CPU time and memory can be read."""

    process: subprocess.Popen[str]
    output: IO[str]

    def cpu_seconds(self) -> float:
        """Return user and system CPU time of the process and its children so far."""
        return sum(_cpu_seconds(one) for one in self._family())

    def resident_bytes(self) -> int:
        """Return the resident memory of the process and its children."""
        return sum(int(one.memory_info().rss) for one in self._family())

    def _family(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]


@contextmanager
def worker(command: list[str], env: dict[str, str] | None = None) -> Iterator[RunningWorker]:
    """Start a worker, wait for its ``ready`` line, and stop it by SIGTERM afterwards."""
    process = subprocess.Popen(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True, env=env)
    try:
        output = process.stdout
        if output is None or output.readline().strip() != "ready":
            raise RuntimeError(f"{command[0]} did not start")
        yield RunningWorker(process, output)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ours() -> Contender:
    """Return our own implementation."""
    return Contender("ours", (sys.executable, "-m", "asynq_bench.ours"), takes_url=True)


def go(folder: Path, module: str = "go") -> Contender:
    """Build a Go program of ``benchmarks/<module>`` into ``folder`` and return it.

    Raises:
        MissingGoError: no Go, or it does not build.

    """
    program = folder / module
    go_tool = shutil.which("go")
    if go_tool is None:
        raise MissingGoError("make bench-asynq needs Go on PATH")
    build = [go_tool, "build", "-mod=readonly", "-o", str(program), "."]
    if subprocess.run(build, cwd=BENCHMARKS / module, check=False).returncode:
        raise MissingGoError(f"benchmarks/{module} does not build")
    return Contender(module, (str(program),), takes_url=False)


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user) + float(times.system)
