"""Card files into cards: ``make bench-import``; the method is in docs/benchmarks.md.

python benchmarks/bench_import.py [--rows N] [--stream-mb N]
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
from pathlib import Path
from typing import Any

from import_bench.files import write_csv, write_xlsx
from import_bench.stream import stream
from import_bench.worker_run import prepare, worker_run

from junhong_cmp.embedded.services import EmbeddedServices


def main() -> int:
    """Measure a CSV and a workbook by a real worker, then a stream of gigabytes in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
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
        asyncio.run(_measure(folder, options.rows, options.stream_mb))
    finally:
        shutil.rmtree(folder)
    return 0


async def _measure(folder: Path, rows: int, stream_mb: int) -> None:
    csv, xlsx = folder / "cards.csv", folder / "cards.xlsx"
    write_csv(csv, 0, rows)
    write_xlsx(xlsx, rows, rows)
    services = EmbeddedServices(folder / "services")
    await services.start()
    try:
        print(
            f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f};"
            f" {rows} rows: CSV {csv.stat().st_size >> 20} MiB, XLSX {xlsx.stat().st_size >> 20} MiB",
            flush=True,
        )
        await prepare(services.postgres_dsn)
        async with worker_run(services, folder) as run:
            idle = await run.idle()
            parts = {"csv": await run.import_file(csv), "xlsx": await run.import_file(xlsx)}
        for name, part in parts.items():
            print(
                f"{name}: {part.seconds:.1f} s, {rows / part.seconds:.0f} rows/s, {part.peak_mb:.0f} MB;"
                f" pick-up p99 {part.waits.worker * 1000:.1f} ms (idle {idle.worker * 1000:.1f} ms),"
                f" bystander's {part.waits.bystander * 1000:.1f} ms (idle {idle.bystander * 1000:.1f} ms)",
                flush=True,
            )
        streamed = _stream(services, stream_mb) if stream_mb else None
    finally:
        await services.stop()
    worst = max((part.waits for part in parts.values()), key=lambda waits: waits.worker)
    figures = {
        "xlsx_s": round(parts["xlsx"].seconds, 1),
        "csv_s": round(parts["csv"].seconds, 1),
        "rss_mb": round(max(part.peak_mb for part in parts.values()), 1),
        "pickup_p99_ratio": round(worst.worker / idle.worker, 2),
        "pickup_p99_ratio_bystander": round(worst.worker / worst.bystander, 2),
        "csv_2gb_rss_mb": None if streamed is None else streamed["rss_mb"],
        "streamed_mb": stream_mb,
    }
    print(json.dumps(figures))


def _stream(services: EmbeddedServices, megabytes: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--stream", services.postgres_dsn, str(megabytes)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    line = done.stdout.splitlines()[-1]
    print(f"stream: {line}", flush=True)
    figures: dict[str, Any] = json.loads(line)
    return figures


if __name__ == "__main__":
    sys.exit(main())
