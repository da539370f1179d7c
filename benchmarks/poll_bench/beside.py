"""The obvious build over the same cards, carrier and servers, in the peers' environment."""

import subprocess
from pathlib import Path
from typing import Final

import redis
from asynq_bench.peers import PEERS_PYTHON, make_environment

from poll_bench.measurement import Measured, Watch, environment, stop
from poll_bench.stage import Stage

CONCURRENCY: Final = 100
_PROGRAM: Final = Path(__file__).with_name("obvious.py")


def measure_obvious(stage: Stage, cards: int) -> Measured:
    """Let one worker of arq poll the first ``cards`` cards; it says itself when its jobs are done."""
    make_environment()
    client = redis.Redis.from_url(stage.redis_url)
    client.flushall()
    client.close()
    run = [str(PEERS_PYTHON), str(_PROGRAM)]
    subprocess.run([*run, "fill", stage.redis_url, str(cards)], check=True)
    worker = subprocess.Popen(
        [*run, "serve", stage.redis_url, str(CONCURRENCY), str(cards), stage.postgres_dsn, stage.gateway_url],
        env=environment(GATEWAY_SECRET=stage.secret),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        output = worker.stdout
        if output is None or output.readline().strip() != "ready":
            raise RuntimeError("the obvious build did not start")

        def done() -> float:
            word, count = output.readline().split()
            return float(count) if word in {"warm", "done"} else 0.0

        return Watch({"consumer": worker.pid, "carrier": stage.carrier_pid}, done, cards).measure()
    finally:
        stop(worker)
