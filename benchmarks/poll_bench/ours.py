"""Our consumer over a full task queue."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import asyncpg
import redis

from poll_bench.backlog import fill_queue
from poll_bench.measurement import Measured, Watch, environment, stop
from poll_bench.sampler import BEGIN
from poll_bench.stage import KEY_ID, Stage

CONCURRENCY: Final = 256
BATCH_CONCURRENCY: Final = 16
_PROCESSED: Final = "asynq:{polling}:processed"
_SETTLE_S: Final = 30.0
_DONE = "SELECT coalesce(sum(done), 0) FROM poll_minute"


def measure(stage: Stage, cards: int, *, batch_size: int, report: Path | None = None) -> Measured:
    """Let one consumer poll the first ``cards`` cards; every one of them must have been committed."""
    tasks = asyncio.run(fill_queue(stage.redis_url, stage.postgres_dsn, cards, batch_size))
    before = asyncio.run(_done(stage.postgres_dsn))
    client: Any = redis.Redis.from_url(stage.redis_url)
    command = [sys.executable, "-m", "poll_bench.consumer", *([] if report is None else [str(report)])]
    concurrency = CONCURRENCY if batch_size == 1 else BATCH_CONCURRENCY
    consumer = subprocess.Popen(
        command, env=_environment(stage, concurrency), cwd=Path(__file__).parents[1], text=True
    )
    try:
        watched = {
            "consumer": consumer.pid,
            "redis": stage.redis_pid,
            "postgres": stage.postgres_pid,
            "carrier": stage.carrier_pid,
        }
        watch = Watch(watched, lambda: int(client.get(_PROCESSED) or 0) / tasks * cards, cards)
        if report is None:
            return watch.measure()
        return watch.measure(lambda: consumer.send_signal(BEGIN))
    finally:
        stop(consumer)
        client.close()
        _check(stage.postgres_dsn, before + cards)


def parts_of(report: Path, cpu_us: float) -> dict[str, float]:
    """Return the microseconds of CPU a poll takes by part, from the samples of a run of its own."""
    counts: dict[str, int] = json.loads(report.read_text(encoding="utf-8"))["parts"]
    total = sum(counts.values())
    return {
        name: round(count / total * cpu_us, 1)
        for name, count in sorted(counts.items(), key=lambda item: -item[1])
    }


def functions_of(report: Path) -> list[tuple[str, float]]:
    """Return the functions most samples fell on, with their share in percent."""
    read = json.loads(report.read_text(encoding="utf-8"))
    total = sum(read["parts"].values())
    return [(name, round(100 * count / total, 1)) for name, count in read["functions"].items()]


def _environment(stage: Stage, concurrency: int) -> dict[str, str]:
    return environment(
        JUNHONG_REDIS_URL=stage.redis_url,
        JUNHONG_POSTGRES_DSN=stage.postgres_dsn,
        JUNHONG_GATEWAY_URL=stage.gateway_url,
        JUNHONG_GATEWAY_KEY_ID=KEY_ID,
        JUNHONG_GATEWAY_SECRET=stage.secret,
        JUNHONG_GATEWAY_ALLOW_HTTP="true",
        JUNHONG_QUEUE_CONCURRENCY=str(concurrency),
        JUNHONG_LOG_LEVEL="warning",
    )


def _check(dsn: str, expected: int) -> None:
    """Wait until the figures of the run are written, and compare."""
    give_up, done = time.monotonic() + _SETTLE_S, 0
    while time.monotonic() < give_up:
        done = asyncio.run(_done(dsn))
        if done >= expected:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{done} polls are done, not {expected}")


async def _done(dsn: str) -> int:
    conn = await asyncpg.connect(dsn)
    try:
        return int(await conn.fetchval(_DONE))
    finally:
        await conn.close()
