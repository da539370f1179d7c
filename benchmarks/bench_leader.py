"""The deciding side with a million cards: ``make bench-leader``; the method is in docs/benchmarks.md.

python benchmarks/bench_leader.py [--cards N]   on embedded Redis and PostgreSQL; ends with one line of JSON
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

from leader_bench.inventory import ACCOUNTS, fill
from leader_bench.parts import run

from junhong_cmp.embedded.services import EmbeddedServices

_IDLE_S = 20
_CLAIMED = 200_000
_DUE_PER_S = 5_000
_DUE_S = 20
_SCRIPT_RUNS = 1_000
_REPORTED = ("init_s", "init_rss_mb", "claim_per_s", "due_lag_p99_ms", "script_ms_max")


def main() -> int:
    """Measure every part in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cards", type=int, default=1_000_000)
    parser.add_argument("--only", metavar="PART", help="one part alone, with all it found, as JSON")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        name, redis_url, dsn, *numbers = options.part
        asyncio.run(run(name, redis_url, dsn, [int(number) for number in numbers]))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="bench-leader-"))
    folder.chmod(0o755)  # PostgreSQL may have to run under another account
    try:
        asyncio.run(_measure(folder, options.cards, options.only))
    finally:
        shutil.rmtree(folder)
    return 0


async def _measure(folder: Path, cards: int, only: str | None) -> None:
    services = EmbeddedServices(folder)
    await services.start()
    try:
        print(
            f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f};"
            f" {cards} cards of {ACCOUNTS} accounts",
            flush=True,
        )
        await fill(services.postgres_dsn, cards)
        figures: dict[str, Any] = {}
        for name, *sizes in (
            ("initialise", cards),
            ("idle", _IDLE_S),
            ("claim", _CLAIMED),
            ("lag", _DUE_PER_S, _DUE_S),
            ("scripts", _SCRIPT_RUNS),
        ):
            if only not in (None, name):
                continue
            part = _run_part(services, name, sizes)
            print(f"{name}: {json.dumps(part)}", flush=True)
            figures |= part
    finally:
        await services.stop()
    if only is not None:
        print(json.dumps(figures))
        return
    figures["init_s"] = figures["init_wall_s"]
    print(json.dumps({name: figures[name] for name in _REPORTED}))


def _run_part(services: EmbeddedServices, name: str, sizes: list[int]) -> dict[str, Any]:
    pids = (process.pid for process in services.processes if process.pid is not None)
    numbers = [str(number) for number in (*pids, *sizes)]
    words = [sys.executable, __file__, "--part", name, services.redis_url, services.postgres_dsn, *numbers]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
