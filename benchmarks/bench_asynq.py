"""Ours against the real Go Asynq on one Redis: ``make bench-asynq``; the method is in docs/benchmarks.md.

python benchmarks/bench_asynq.py            the comparison with Go; ends with one line of JSON
python benchmarks/bench_asynq.py --leak     two million tasks through one process
python benchmarks/bench_asynq.py --peers    other Python queues, in an environment of their own
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from asynq_bench.contenders import Contender, MissingGoError, go, ours
from asynq_bench.figures import Figures
from asynq_bench.leak import growth, measure_leak
from asynq_bench.peers import measure_peers
from asynq_bench.pickup import bare_pickup_ms, pickup_ms
from asynq_bench.redis_server import MeasuredRedis, own_redis
from asynq_bench.throughput import BULK, PAYLOAD_BYTES, measure_noop

_TASKS = {"go": {10: 20_000, 200: 20_000}, "ours": {10: 40_000, 200: 80_000}}
_TASKS_OF_TWO = 120_000
_ENQUEUED = 8_000
_BULK_CALLS = 20
_PICKUPS = {"bare": 60, "ours": 60, "go": 6}
_LEAK_LIMIT_MIB = 8.0


def main() -> int:
    """Run what was asked for; 0 unless something is missing or leaks."""
    options = _parse()
    with _redis(options.redis) as redis, TemporaryDirectory(prefix="bench-asynq-") as folder:
        print(f"{redis.version}, Python {platform.python_version()}, {os.cpu_count()} cores")
        if options.leak:
            return _leak(redis)
        if options.peers:
            measure_peers(redis, options.rounds)
            return 0
        try:
            _compare(redis, go(Path(folder)), options.rounds)
        except MissingGoError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--redis", metavar="URL", help="an empty server to use, instead of one of our own")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in alternation (default 5)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--leak", action="store_true", help="only the leak proxy")
    instead.add_argument("--peers", action="store_true", help="only the other Python queues")
    return parser.parse_args()


@contextmanager
def _redis(url: str | None) -> Iterator[MeasuredRedis]:
    if url is None:
        with own_redis() as redis:
            yield redis
        return
    parts = urlsplit(url)
    redis = MeasuredRedis(parts.hostname or "127.0.0.1", parts.port or 6379)
    if redis.client.dbsize():
        sys.exit("the server is not empty: its data would be deleted")
    yield redis
    redis.empty()


def _compare(redis: MeasuredRedis, theirs: Contender, rounds: int) -> None:
    figures, began = Figures(), time.monotonic()
    for number in range(1, rounds + 1):
        _round(redis, theirs, figures)
        print(f"round {number} of {rounds} done after {time.monotonic() - began:.0f} s", flush=True)
    redis.empty()
    print("\n".join(figures.table(_ENQUEUED, _BULK_CALLS * BULK)))
    print(json.dumps(figures.summary()))


def _round(redis: MeasuredRedis, theirs: Contender, figures: Figures) -> None:
    """Measure everything once, each of Go's figures next to ours."""
    mine = ours()
    for concurrency in (10, 200):
        for contender in (theirs, mine):
            tasks = _TASKS[contender.name][concurrency]
            run = measure_noop(redis, contender, concurrency=concurrency, tasks=tasks)
            figures.runs[f"{contender.name} c{concurrency}"].append(run)
    run = measure_noop(redis, mine, concurrency=200, tasks=_TASKS_OF_TWO, processes=2)
    figures.runs["ours 2x c200"].append(run)
    for contender in (theirs, mine):
        seconds = contender.seconds(redis, "enqueue", _ENQUEUED, PAYLOAD_BYTES)
        figures.seconds[f"{contender.name} enqueue"].append(seconds)
        redis.empty()
    for contender, subcommand in ((theirs, "batch"), (mine, "bulk")):
        seconds = contender.seconds(redis, subcommand, _BULK_CALLS, BULK, PAYLOAD_BYTES)
        figures.seconds[f"{contender.name} {subcommand}"].append(seconds)
        redis.empty()
    figures.pickups_ms["bare"] += bare_pickup_ms(redis, _PICKUPS["bare"])
    for contender in (mine, theirs):
        figures.pickups_ms[contender.name] += pickup_ms(redis, contender, _PICKUPS[contender.name])


def _leak(redis: MeasuredRedis) -> int:
    memory_mib, keys = growth(measure_leak(redis))
    flat = memory_mib <= _LEAK_LIMIT_MIB and keys <= 0
    print(json.dumps({"rss_growth_mib": round(memory_mib, 1), "key_growth": keys, "flat": flat}))
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
