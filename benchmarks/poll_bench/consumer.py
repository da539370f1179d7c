"""The process that is measured: ``junhong worker``, as it is; with a path, samples are written there.

consumer.py [report.json]
"""

import sys
from pathlib import Path

from junhong_cmp.cli.app import run
from junhong_cmp.cli.signals import StopSignals
from poll_bench.sampler import Sampler


def main() -> int:
    """Run a consumer until it is told to stop."""
    signals = StopSignals()
    signals.install()
    if len(sys.argv) > 1:
        Sampler().start(Path(sys.argv[1]))
    return run(signals, ["worker", "--role", "consumer"])


if __name__ == "__main__":
    sys.exit(main())
