"""One consumer process, end to end: ``make bench-poll``; the method is in docs/benchmarks.md.

python benchmarks/bench_poll.py [--cards N] [--batch-cards N] [--rounds N] [--functions] [--without-obvious]
Real HTTP to a simulated carrier, real PostgreSQL, real Redis; ends with one line of JSON.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from poll_bench.beside import measure_obvious
from poll_bench.measurement import Measured
from poll_bench.ours import functions_of, measure, parts_of
from poll_bench.stage import Stage, carrier, fill, new_secret, start_services

_BATCH = 100


def main() -> int:
    """Measure single polls, batches, and the obvious build, in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--batch-cards", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--functions", action="store_true", help="print where the CPU time goes")
    parser.add_argument("--without-obvious", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-poll-"))
    folder.chmod(0o755)  # PostgreSQL may have to run under another account
    try:
        _run(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _run(folder: Path, options: argparse.Namespace) -> None:
    services, secret = start_services(folder), new_secret()
    try:
        with carrier(secret) as (gateway_url, carrier_pid):
            redis_pid, postgres_pid = (
                process.pid for process in services.processes if process.pid is not None
            )
            stage = Stage(
                redis_url=services.redis_url,
                postgres_dsn=services.postgres_dsn,
                gateway_url=gateway_url,
                redis_pid=redis_pid,
                postgres_pid=postgres_pid,
                carrier_pid=carrier_pid,
                secret=secret,
            )
            _measure(stage, folder, options)
    finally:
        asyncio.run(services.stop())


def _measure(stage: Stage, folder: Path, options: argparse.Namespace) -> None:
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}", flush=True)
    every = max(options.cards, options.batch_cards)
    asyncio.run(fill(stage.postgres_dsn, every))
    measure(stage, every, batch_size=_BATCH)  # first readings: a card's whole life but one
    runs: dict[str, list[Measured]] = {"single": [], "batch": [], "obvious": []}
    for _ in range(options.rounds):
        runs["single"].append(_told("single", measure(stage, options.cards, batch_size=1)))
        runs["batch"].append(_told("batch", measure(stage, options.batch_cards, batch_size=_BATCH)))
        if not options.without_obvious:
            runs["obvious"].append(_told("obvious", measure_obvious(stage, options.cards)))
    rate = {
        name: median(run.polls_per_core_s for run in measured) for name, measured in runs.items() if measured
    }
    parts: dict[str, dict[str, float]] = {}
    for name, cards, size in (("single", options.cards, 1), ("batch", options.batch_cards, _BATCH)):
        report = folder / f"{name}.json"
        measure(stage, cards, batch_size=size, report=report)
        parts[name] = parts_of(report, 1e6 / rate[name])
        if options.functions:
            print(name, *(f"\n{share:5.1f} % {function}" for function, share in functions_of(report)))
    ratio = round(rate["single"] / rate["obvious"], 2) if "obvious" in rate else None
    print(
        json.dumps(
            {
                "polls_per_core_s": round(rate["single"]),
                "batch_cards_per_core_s": round(rate["batch"]),
                "ratio_obvious": ratio,
                "cpu_us_by_part": parts,
            }
        )
    )


def _told(name: str, measured: Measured) -> Measured:
    print(
        f"{name}: {measured.polls_per_core_s:,.0f} cards a CPU second,"
        f" {measured.polls_per_s:,.0f}/s by the clock, CPU µs {json.dumps(measured.cpu_us)}",
        flush=True,
    )
    return measured


if __name__ == "__main__":
    sys.exit(main())
