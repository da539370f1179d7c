"""Tasks a second that do nothing, and what they cost."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from asynq_bench.contenders import Contender, RunningWorker, ours, worker
from asynq_bench.redis_server import MeasuredRedis

PAYLOAD_BYTES = 64
BULK = 1000
_POLL_S = 0.01
_WARM_SHARE = 0.15
_STALL_S = 60.0


class Throughput(NamedTuple):
    """What one run showed, per task where it says so."""

    tasks_per_s: float
    redis_cpu_us: float
    worker_cpu_us: float


@dataclass(frozen=True, slots=True)
class Mark:
    """How many tasks were done at a moment (``perf_counter``), and what CPU time they had cost until then."""

    tasks: int
    at: float
    redis_cpu: float
    worker_cpu: float


def fill(redis: MeasuredRedis, count: int) -> None:
    """Put ``count`` tasks into an otherwise empty Redis."""
    redis.empty()
    ours().seconds(redis, "bulk", count // BULK, BULK, PAYLOAD_BYTES)


def measure_noop(
    redis: MeasuredRedis, contender: Contender, *, concurrency: int, tasks: int, processes: int = 1
) -> Throughput:
    """Let the contender work off a full queue and watch its counter of processed tasks from outside.

    The clock runs from the moment a part of the tasks is done to the moment all are, so that neither start
    nor connecting counts; "done" means acknowledged.
    """
    fill(redis, tasks)
    with ExitStack() as stack:
        command = contender.call(redis, "serve", concurrency)
        workers = [stack.enter_context(worker(command)) for _ in range(processes)]
        return watch(redis, workers, lambda: processed(redis), tasks)


def watch(
    redis: MeasuredRedis, workers: Sequence[RunningWorker], done: Callable[[], int], tasks: int
) -> Throughput:
    """Watch ``done`` rise to ``tasks`` and return the throughput of the warm part."""
    warm = _mark_at(redis, workers, done, int(tasks * _WARM_SHARE))
    return throughput(warm, _mark_at(redis, workers, done, tasks))


def throughput(warm: Mark, end: Mark) -> Throughput:
    """Return what lies between two moments, per task."""
    count = end.tasks - warm.tasks
    return Throughput(
        tasks_per_s=count / (end.at - warm.at),
        redis_cpu_us=(end.redis_cpu - warm.redis_cpu) / count * 1e6,
        worker_cpu_us=(end.worker_cpu - warm.worker_cpu) / count * 1e6,
    )


def take_mark(redis: MeasuredRedis, workers: Sequence[RunningWorker], tasks: int) -> Mark:
    """Note this moment."""
    at = time.perf_counter()
    return Mark(tasks, at, redis.cpu_seconds(), sum(one.cpu_seconds() for one in workers))


def _mark_at(
    redis: MeasuredRedis, workers: Sequence[RunningWorker], done: Callable[[], int], tasks: int
) -> Mark:
    seen, moved_at = -1, time.monotonic()
    while (count := done()) < tasks:
        if count != seen:
            seen, moved_at = count, time.monotonic()
        elif time.monotonic() - moved_at > _STALL_S:
            raise RuntimeError(f"no progress: {count} of {tasks} tasks done")
        time.sleep(_POLL_S)
    return take_mark(redis, workers, count)


def processed(redis: MeasuredRedis) -> int:
    """Return how many tasks the queue counts as processed."""
    return int(redis.client.get("asynq:{default}:processed") or 0)
