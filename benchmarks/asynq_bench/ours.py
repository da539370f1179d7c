"""Our side of the comparison; a program of its own, as every contender is.

    python -m asynq_bench.ours serve   <url> <concurrency>         process tasks until SIGTERM
    python -m asynq_bench.ours pickup  <url> <concurrency>         as serve; handlers report when they start
    python -m asynq_bench.ours enqueue <url> <count> <bytes>         one task a call; prints seconds
    python -m asynq_bench.ours bulk    <url> <calls> <size> <bytes>  enqueue_many of <size>; prints seconds

The servers print ``ready`` and then run as a worker in production does: uvloop, heartbeats on a thread of
their own, a mux, deadlines, the registry.
"""

import asyncio
import logging
import signal
import sys
import time

import structlog
import uvloop

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_blocking_redis, open_redis
from junhong_cmp.asynq.mux import HandlerFunction, ServeMux
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import ServerConfig
from junhong_cmp.asynq.task import EnqueueOptions, Task

PICKED_KEY = "bench:picked"


async def _do_nothing(task: ProcessingTask) -> None:
    """Handle a task by doing nothing."""


async def _serve(url: str, concurrency: int, handler: HandlerFunction) -> None:
    redis, blocking = open_redis(url), open_blocking_redis(url)
    mux = ServeMux()
    mux.handle("bench:", handler)
    config = ServerConfig(concurrency=concurrency)
    server = Server(redis, blocking, mux, config, heartbeat_redis=lambda: open_redis(url, pool_size=2))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    print("ready", flush=True)
    await stop.wait()
    await server.stop()
    await redis.aclose()
    await blocking.aclose()


async def _pickup(url: str, concurrency: int) -> None:
    redis = open_redis(url)

    async def report(_task: ProcessingTask) -> None:
        await redis.execute_command("LPUSH", PICKED_KEY, time.time_ns())

    await _serve(url, concurrency, report)
    await redis.aclose()


async def _enqueue(url: str, count: int, size: int) -> float:
    redis = open_redis(url)
    client, payload = Client(redis), bytes(size)
    await client.enqueue(Task("bench:warm", payload))
    began = time.perf_counter()
    for _ in range(count):
        await client.enqueue(Task("bench:noop", payload))
    elapsed = time.perf_counter() - began
    await redis.aclose()
    return elapsed


async def _bulk(url: str, calls: int, size: int, payload_bytes: int) -> float:
    redis = open_redis(url)
    client, payload = Client(redis), bytes(payload_bytes)
    await redis.execute_command("PING")
    began = time.perf_counter()
    for _ in range(calls):
        await client.enqueue_many([(Task("bench:noop", payload), EnqueueOptions()) for _ in range(size)])
    elapsed = time.perf_counter() - began
    await redis.aclose()
    return elapsed


def main() -> None:
    """Run one subcommand."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    command, url, *numbers = sys.argv[1:]
    first, *rest = map(int, numbers)
    if command == "serve":
        uvloop.run(_serve(url, first, _do_nothing))
    elif command == "pickup":
        uvloop.run(_pickup(url, first))
    elif command == "enqueue":
        print(uvloop.run(_enqueue(url, first, *rest)))
    elif command == "bulk":
        print(uvloop.run(_bulk(url, first, *rest)))
    else:
        sys.exit(f"unknown subcommand {command!r}")


if __name__ == "__main__":
    main()
