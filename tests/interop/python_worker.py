"""A worker process of this package: counts in Redis what it runs, until SIGTERM (or the test's SIGKILL)."""

import argparse
import asyncio
import signal
from datetime import timedelta

from junhong_cmp.asynq.connection import open_blocking_redis, open_redis
from junhong_cmp.asynq.mux import FunctionHandler
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import Intervals, ServerConfig

EXECUTIONS = "interop:executions"
WORKERS = "interop:workers"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("queue")
    parser.add_argument("name", help="field under which the runs are counted")
    parser.add_argument("--concurrency", type=int, default=10)
    parser.add_argument("--hang", action="store_true", help="let no task end by itself")
    return parser.parse_args()


async def main(arguments: argparse.Namespace) -> None:
    redis, blocking = open_redis(arguments.url), open_blocking_redis(arguments.url)

    async def handle(task: ProcessingTask) -> None:
        pipe = redis.pipeline(transaction=False)
        pipe.execute_command("HINCRBY", EXECUTIONS, task.id, 1)
        pipe.execute_command("HINCRBY", WORKERS, arguments.name, 1)
        await pipe.execute()
        if arguments.hang:
            await asyncio.Event().wait()

    config = ServerConfig(
        concurrency=arguments.concurrency,
        queues={arguments.queue: 1},
        retry_delay=lambda *_: timedelta(seconds=1),
        # Leases stay as Go knows them; only how often this side looks for lapsed ones is its own affair.
        intervals=Intervals(recover=timedelta(seconds=1), forward=timedelta(seconds=0.2)),
    )
    server = Server(
        redis,
        blocking,
        FunctionHandler(handle),
        config,
        heartbeat_redis=lambda: open_redis(arguments.url, pool_size=2),
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await server.start()
    await stop.wait()
    await server.stop()
    await redis.aclose()
    await blocking.aclose()


asyncio.run(main(parse_arguments()))
