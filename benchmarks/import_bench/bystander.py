"""A queue server in a process of its own that takes probes and never imports: what the machine alone costs.

python -m import_bench.bystander RECORD REDIS_URL, until SIGTERM
"""

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from import_bench.probe_record import BYSTANDER_QUEUE, PROBE, ProbeRecord
from junhong_cmp.asynq.connection import open_blocking_redis, open_redis
from junhong_cmp.asynq.mux import ServeMux
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import ServerConfig


async def serve(record: ProbeRecord, url: str) -> None:
    """Take probes until SIGTERM."""

    async def take(task: ProcessingTask) -> None:
        record.note(task.payload)

    mux = ServeMux()
    mux.handle(PROBE, take)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    redis, blocking = open_redis(url), open_blocking_redis(url)
    server = Server(
        redis,
        blocking,
        mux,
        ServerConfig(concurrency=10, queues={BYSTANDER_QUEUE: 1}),
        heartbeat_redis=lambda: open_redis(url, pool_size=2),
    )
    await server.start()
    await stop.wait()
    await server.stop()
    await redis.aclose()
    await blocking.aclose()


if __name__ == "__main__":
    uvloop.run(serve(ProbeRecord(Path(sys.argv[1])), sys.argv[2]))
