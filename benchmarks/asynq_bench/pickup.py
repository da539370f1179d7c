"""How long a task waits for an idle server, beside a bare BLPOP on the same machine."""

import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

import uvloop

from asynq_bench.contenders import BENCHMARKS, Contender, worker
from asynq_bench.ours import PICKED_KEY
from asynq_bench.redis_server import MeasuredRedis
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.task import Task

_CONCURRENCY = 10
_SETTLE_S = 1.0
_LIMIT_S = 10
_BARE_KEY = "bench:bare"
"""List the bare reader blocks on."""


def bare_pickup_ms(redis: MeasuredRedis, samples: int) -> list[float]:
    """Return for each LPUSH how long a reader blocked in BLPOP took to hold it."""
    reader = [sys.executable, "-m", "asynq_bench.pickup", redis.host, str(redis.port)]
    process = subprocess.Popen(reader, cwd=BENCHMARKS)
    try:
        time.sleep(_SETTLE_S)
        return [_sample(redis, lambda: redis.client.lpush(_BARE_KEY, b"x")) for _ in range(samples)]
    finally:
        process.terminate()
        process.wait()


def pickup_ms(redis: MeasuredRedis, contender: Contender, samples: int) -> list[float]:
    """Return for each task how long after the call that enqueues it its handler was started."""
    redis.empty()
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        stack.enter_context(worker(contender.call(redis, "pickup", _CONCURRENCY)))
        client = Client(open_redis(redis.url))
        time.sleep(_SETTLE_S)
        task = Task("bench:pickup")
        return [_sample(redis, lambda: runner.run(client.enqueue(task))) for _ in range(samples)]


def quantile(values: list[float], share: float) -> float:
    """Return the value below which ``share`` of ``values`` lie."""
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]


def _sample(redis: MeasuredRedis, push: Callable[[], object]) -> float:
    time.sleep(random.uniform(0.03, 0.09))
    began = time.time_ns()
    push()
    popped = redis.client.blpop([PICKED_KEY], timeout=_LIMIT_S)
    if not isinstance(popped, list | tuple):
        raise TypeError("nobody picked the task up")
    return (int(popped[1]) - began) / 1e6


def _read_bare(host: str, port: int) -> None:
    redis = MeasuredRedis(host, port)
    while True:
        redis.client.blpop([_BARE_KEY])
        redis.client.lpush(PICKED_KEY, time.time_ns())


if __name__ == "__main__":
    _read_bare(sys.argv[1], int(sys.argv[2]))
