"""Other Python queues in the same harness, in an environment of their own, made when it is asked for."""

import statistics
import subprocess
import sys
from typing import Final

from asynq_bench.contenders import BENCHMARKS, ours, worker
from asynq_bench.redis_server import MeasuredRedis
from asynq_bench.throughput import PAYLOAD_BYTES, Throughput, measure_noop, take_mark, throughput

PEERS: Final = {"arq": 100, "taskiq": 100, "saq": 100, "streaq": 100, "dramatiq": 8, "celery": 8}
"""Concurrency of each: handlers on an event loop, or threads."""
_TASKS: Final = 6_000
_OUR_TASKS: Final = 60_000
_OURS: Final = "ours"
_HOME: Final = BENCHMARKS / "peers"
PEERS_PYTHON: Final = _HOME / ".venv" / "bin" / "python"
_LOCK: Final = BENCHMARKS / "requirements.lock"


def measure_peers(redis: MeasuredRedis, rounds: int) -> None:
    """Measure every peer and ourselves in turn, and print medians."""
    make_environment()
    runs: dict[str, list[Throughput]] = {name: [] for name in (_OURS, *PEERS)}
    for _ in range(rounds):
        runs[_OURS].append(measure_noop(redis, ours(), concurrency=100, tasks=_OUR_TASKS))
        for name, concurrency in PEERS.items():
            runs[name].append(measure_peer(redis, name, concurrency))
    redis.empty()
    print(f"{'no-op tasks':16}{'tasks/s':>10}{'redis µs':>10}{'worker µs':>11}")
    for name, measured in runs.items():
        rate, redis_us, worker_us = (statistics.median(column) for column in zip(*measured, strict=True))
        print(f"{name:16}{rate:10,.0f}{redis_us:10.1f}{worker_us:11.1f}")


def measure_peer(redis: MeasuredRedis, name: str, concurrency: int) -> Throughput:
    """Let one peer work off its full queue; it says itself when its handlers have run."""
    redis.empty()
    run = [str(PEERS_PYTHON), str(_HOME / "run.py"), name]
    subprocess.run([*run, "fill", redis.url, str(_TASKS), str(PAYLOAD_BYTES)], check=True)
    with worker([*run, "serve", redis.url, str(concurrency), str(_TASKS)]) as one:
        marks = []
        for word in ("warm", "done"):
            line = one.output.readline().split()
            if not line or line[0] != word:
                raise RuntimeError(f"{name} ended before its tasks were done")
            marks.append(take_mark(redis, [one], int(line[1])))
    return throughput(*marks)


def make_environment() -> None:
    """Make the peers' environment from the lock file, unless it is there."""
    stamp = _HOME / ".venv" / ".made"
    if stamp.exists() and stamp.stat().st_mtime > _LOCK.stat().st_mtime:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(_HOME / ".venv")], check=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([str(PEERS_PYTHON), *install, "-r", str(_LOCK)], check=True)
    stamp.touch()
