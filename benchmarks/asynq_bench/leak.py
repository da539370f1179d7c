"""A day's work in minutes: millions of tasks through one process, whose memory must not grow."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep

from asynq_bench.contenders import BENCHMARKS, RunningWorker, ours, worker
from asynq_bench.redis_server import MeasuredRedis
from asynq_bench.throughput import BULK, PAYLOAD_BYTES, processed

TASKS = 2_000_000
WARM_TASKS = 100_000
_ROUND = 50_000
_CONCURRENCY = 200
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory of the worker, and keys in Redis except that of the running tasks, after so many tasks."""

    tasks: int
    rss_mib: float
    keys: int


def measure_leak(redis: MeasuredRedis, tasks: int = TASKS) -> list[Sample]:
    """Feed one worker in rounds, and sample it after each, when nothing is left to do."""
    redis.empty()
    samples = []
    with worker(ours().call(redis, "serve", _CONCURRENCY)) as one:
        for done in range(_ROUND, tasks + 1, _ROUND):
            with _feeding(redis):
                _await_processed(redis, done)
            samples.append(_sample(redis, one, done))
            print(f"  {done:>9,} tasks  {samples[-1].rss_mib:7.1f} MiB  {samples[-1].keys} keys", flush=True)
    return samples


def growth(samples: list[Sample]) -> tuple[float, int]:
    """Return by how many MiB and keys the worst sample after the warm part exceeds its end."""
    warm = next(sample for sample in samples if sample.tasks >= WARM_TASKS)
    later = [sample for sample in samples if sample.tasks >= WARM_TASKS]
    return max(one.rss_mib for one in later) - warm.rss_mib, max(one.keys for one in later) - warm.keys


@contextmanager
def _feeding(redis: MeasuredRedis) -> Iterator[None]:
    command = ours().call(redis, "bulk", _ROUND // BULK, BULK, PAYLOAD_BYTES)
    process = subprocess.Popen(command, cwd=BENCHMARKS, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        if process.wait():
            raise RuntimeError("the producer failed")


def _await_processed(redis: MeasuredRedis, tasks: int) -> None:
    while processed(redis) < tasks:
        sleep(0.02)


def _sample(redis: MeasuredRedis, one: RunningWorker, tasks: int) -> Sample:
    shown = sum(1 for _ in redis.client.scan_iter(match="asynq:workers:{*"))  # there while a beat saw tasks
    return Sample(tasks, one.resident_bytes() / _MIB, int(redis.client.dbsize()) - shown)
