"""What is read off the machine: CPU time, memory, the server's slow scripts."""

import time
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

_PROMISED_MS: Final = 5
_KEPT: Final = 100_000


def peak_rss_mib() -> float:
    """Return the most memory this process has had resident; not what its parent had before ``exec``."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


@dataclass(slots=True)
class Stopwatch:
    """A stopwatch measures the wall clock, this process's CPU time, and that of two servers."""

    redis: Any
    postgres_pid: int
    _began: tuple[float, float, float, float] = field(init=False)

    async def start(self) -> None:
        """Begin."""
        self._began = await self._read()

    async def stop(self) -> dict[str, float]:
        """Return seconds by what they were measured on."""
        ended = await self._read()
        names = ("wall_s", "cpu_s", "redis_cpu_s", "postgres_cpu_s")
        return {
            name: round(after - before, 3)
            for name, before, after in zip(names, self._began, ended, strict=True)
        }

    async def _read(self) -> tuple[float, float, float, float]:
        info = await self.redis.info("cpu")
        redis_s = info["used_cpu_user"] + info["used_cpu_sys"]
        return time.monotonic(), time.process_time(), redis_s, _tree_cpu_s(self.postgres_pid)


class ServerTimes:
    """Server times are how long single commands took by the server's own slow log.

    It reads the wall clock: where other programs want the cores too, the longest of very many commands shows
    how long the server was kept waiting for one.
    """

    def __init__(self, redis: Any) -> None:
        self._redis = redis

    async def begin(self, *, slower_than: timedelta = timedelta(milliseconds=1)) -> None:
        """Forget what was before."""
        await self._redis.config_set("slowlog-max-len", _KEPT)
        await self._redis.config_set("slowlog-log-slower-than", slower_than // timedelta(microseconds=1))
        await self._redis.slowlog_reset()
        await self._redis.config_resetstat()

    async def latest_ms(self, command: bytes) -> float:
        """Return how long the slowest ``command`` took since the last time this was asked; forget all."""
        entries = await self._redis.slowlog_get(_KEPT)
        await self._redis.slowlog_reset()
        durations: list[int] = [
            entry["duration"] for entry in entries if entry["command"].startswith(command)
        ]
        return max(durations) / 1000

    async def times_ms(self) -> list[float]:
        """Return the times of the scripts and bulk commands that took so long."""
        entries = await self._redis.slowlog_get(_KEPT)
        return [
            entry["duration"] / 1000
            for entry in entries
            if entry["command"].split(b" ", 1)[0] in {b"EVALSHA", b"EVAL", b"ZADD"}
        ]

    async def summary(self) -> dict[str, float]:
        """Return how many scripts ran, their mean, the longest, and how many broke the promise."""
        times = await self.times_ms()
        stats = await self._redis.info("commandstats")
        scripts = stats.get("cmdstat_evalsha", {"calls": 0, "usec_per_call": 0.0})
        return {
            "scripts": scripts["calls"],
            "scripts_mean_ms": round(scripts["usec_per_call"] / 1000, 4),
            "scripts_longest_ms": max(times, default=0.0),
            "scripts_over_5_ms": sum(ms > _PROMISED_MS for ms in times),
        }


class ServerMeter:
    """A server meter tells how long a command held the server.

    Two readings are each an upper bound, and the lower one counts: the server's own, which goes on while
    other programs have the core, and the time its main thread was on a core, which takes in what comes before
    and after the command.
    """

    def __init__(self, pid: int, times: ServerTimes) -> None:
        self._path = Path(f"/proc/{pid}/task/{pid}/schedstat")
        self._server = times
        self._times: defaultdict[str, list[float]] = defaultdict(list)

    async def measure(self, name: str, command: Awaitable[Any], *, word: bytes = b"EVALSHA") -> Any:
        """Await the only command under way and note what it took."""
        before = self._read_ms()
        reply = await command
        on_core = self._read_ms() - before
        self._times[name].append(min(on_core, await self._server.latest_ms(word)))
        return reply

    def summary(self) -> dict[str, Any]:
        """Return median, 99.9th percentile and maximum of each command, and the longest of all."""
        figures: dict[str, Any] = {
            name: {
                "median_ms": round(median(times), 3),
                "p999_ms": round(sorted(times)[ceil(len(times) * 0.999) - 1], 3),
                "max_ms": round(max(times), 3),
            }
            for name, times in self._times.items()
        }
        return figures | {"script_ms_max": round(max(max(times) for times in self._times.values()), 3)}

    def _read_ms(self) -> float:
        return int(self._path.read_text(encoding="ascii").split()[0]) / 1e6


def _tree_cpu_s(pid: int) -> float:
    """CPU seconds of a server and its children, those that have ended included."""
    server = psutil.Process(pid)
    total = 0.0
    for process in (server, *server.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
