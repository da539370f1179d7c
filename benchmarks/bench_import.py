"""Card files into cards: ``make bench-import``; the method is in docs/benchmarks.md.

python benchmarks/bench_import.py [--rows N] [--rounds N] [--stream-mb N]
on embedded Redis and PostgreSQL; ends with one line of JSON
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from import_bench.files import write_csv, write_xlsx
from import_bench.stream import stream
from import_bench.worker_run import Measured, Waits, prepare, worker_run

from junhong_cmp.embedded.services import EmbeddedServices


def main() -> int:
    """Measure a CSV and a workbook by a real worker, some rounds of it, then a stream of gigabytes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream-mb", type=int, default=2_000, help="0 leaves the stream out")
    parser.add_argument("--stream", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stream:
        dsn, megabytes = options.stream
        asyncio.run(stream(dsn, int(megabytes)))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="bench-import-"))
    folder.chmod(0o755)  # PostgreSQL may have to run under another account
    try:
        asyncio.run(_measure(folder, options))
    finally:
        shutil.rmtree(folder)
    return 0


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round measured, each on services that are new."""

    idle: Waits
    busy: Waits
    csv: Measured
    xlsx: Measured

    @property
    def worst(self) -> Waits:
        """The waits beside the import that others waited longer for."""
        return max(self.csv.waits, self.xlsx.waits, key=lambda waits: waits.worker)


async def _measure(folder: Path, options: argparse.Namespace) -> None:
    csv, xlsx = folder / "cards.csv", folder / "cards.xlsx"
    write_csv(csv, 0, options.rows)
    write_xlsx(xlsx, options.rows, options.rows)
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f};"
        f" {options.rows} rows: CSV {csv.stat().st_size >> 20} MiB, XLSX {xlsx.stat().st_size >> 20} MiB",
        flush=True,
    )
    rounds = [await _measure_round(folder, csv, xlsx) for _ in range(options.rounds)]
    streamed = await _measure_stream(folder, options.stream_mb) if options.stream_mb else None
    figures = {
        "xlsx_s": round(median(one.xlsx.seconds for one in rounds), 1),
        "csv_s": round(median(one.csv.seconds for one in rounds), 1),
        "rss_mb": round(max(part.peak_mb for one in rounds for part in (one.csv, one.xlsx)), 1),
        "pickup_p99_ratio": round(median(one.worst.worker / one.idle.worker for one in rounds), 2),
        "pickup_p99_ratio_busy": round(median(one.worst.worker / one.busy.worker for one in rounds), 2),
        "pickup_p99_ratio_bystander": round(
            median(one.worst.worker / one.worst.bystander for one in rounds), 2
        ),
        "csv_2gb_rss_mb": None if streamed is None else streamed["rss_mb"],
        "streamed_mb": options.stream_mb,
    }
    print(json.dumps(figures))


async def _measure_round(folder: Path, csv: Path, xlsx: Path) -> _Round:
    async with _services(folder) as services:
        await prepare(services.postgres_dsn)
        async with worker_run(services, folder) as run:
            one = _Round(
                await run.idle(), await run.busy(), await run.import_file(csv), await run.import_file(xlsx)
            )
    print(f"pick-up p99 {_ms(one.idle)}; beside a program that only counts {_ms(one.busy)}")
    for name, part in (("csv", one.csv), ("xlsx", one.xlsx)):
        print(
            f"{name}: {part.seconds:.1f} s, {part.rows / part.seconds:.0f} rows/s, {part.peak_mb:.0f} MB;"
            f" pick-up p99 {_ms(part.waits)}",
            flush=True,
        )
    return one


async def _measure_stream(folder: Path, megabytes: int) -> dict[str, Any]:
    async with _services(folder) as services:
        await prepare(services.postgres_dsn)
        return _stream(services, megabytes)


@asynccontextmanager
async def _services(folder: Path) -> AsyncGenerator[EmbeddedServices, None]:
    """Run Redis and PostgreSQL with nothing in them, in a folder that goes with them."""
    new = folder / "services"
    services = EmbeddedServices(new)
    await services.start()
    try:
        yield services
    finally:
        await services.stop()
        shutil.rmtree(new)


def _ms(waits: Waits) -> str:
    return f"{waits.worker * 1000:.1f} ms (the bystander's {waits.bystander * 1000:.1f} ms)"


def _stream(services: EmbeddedServices, megabytes: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--stream", services.postgres_dsn, str(megabytes)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    line = done.stdout.splitlines()[-1]
    print(f"stream: {line}", flush=True)
    figures: dict[str, Any] = json.loads(line)
    return figures


if __name__ == "__main__":
    sys.exit(main())
