"""Tasks a second that do nothing, one worker process on a Redis of its own: ``make bench``.

No Go and no server is needed. The method and figures are in docs/benchmarks.md.
"""

import json
import os
import platform
from statistics import median

from asynq_bench.contenders import ours
from asynq_bench.redis_server import own_redis
from asynq_bench.throughput import measure_noop

_RUNS = 5
_TASKS = 40_000
_CONCURRENCY = 200


def main() -> None:
    """Measure several runs and print each, then the median as one line of JSON."""
    with own_redis() as redis:
        print(f"{redis.version}, Python {platform.python_version()}, {os.cpu_count()} cores", flush=True)
        runs = []
        for number in range(1, _RUNS + 1):
            run = measure_noop(redis, ours(), concurrency=_CONCURRENCY, tasks=_TASKS)
            runs.append(run)
            print(f"run {number}: {run.tasks_per_s:,.0f} tasks/s, {run.worker_cpu_us:.0f} µs of CPU a task")
        redis.empty()
    print(
        json.dumps(
            {
                "tasks_per_s": round(median(run.tasks_per_s for run in runs)),
                "worker_cpu_us_a_task": round(median(run.worker_cpu_us for run in runs), 1),
                "redis_cpu_us_a_task": round(median(run.redis_cpu_us for run in runs), 1),
            }
        )
    )


if __name__ == "__main__":
    main()
