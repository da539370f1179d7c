"""One peer's program, run in the peers' own environment (see benchmarks/asynq_bench/peers.py).

run.py <peer> fill  <url> <tasks> <payload bytes>
run.py <peer> serve <url> <concurrency> <tasks>
"""

import importlib
import logging
import sys

from tally import Tally


def main() -> None:
    """Run one subcommand of one peer."""
    logging.disable(logging.WARNING)
    name, command, url, first, second = sys.argv[1:]
    peer = importlib.import_module(f"{name}_peer")
    if command == "fill":
        peer.fill(url, int(first), "x" * int(second))
    else:
        print("ready", flush=True)
        peer.serve(url, int(first), Tally(int(second)))


if __name__ == "__main__":
    main()
