"""Running a real server against a real Redis, with short intervals."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from redis.asyncio.cluster import RedisCluster
from tests.waiting import wait_until

from junhong_cmp.asynq.broker import Broker, BrokerLimits
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient, open_blocking_redis, open_redis
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.mux import FunctionHandler, HandlerFunction
from junhong_cmp.asynq.processing_task import Handler, ProcessingTask
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import Intervals, ServerConfig
from junhong_cmp.asynq.task import EnqueueOptions, Task

QUICK = Intervals(
    heartbeat=timedelta(seconds=0.3),
    lease=timedelta(seconds=2),
    recovery_margin=timedelta(seconds=1),
    recover=timedelta(seconds=0.3),
    forward=timedelta(seconds=0.1),
    janitor=timedelta(seconds=0.1),
    blocking_wait=timedelta(seconds=0.5),
    paused_check=timedelta(seconds=0.1),
    backoff_cap=timedelta(seconds=0.3),
    loop_blocked_after=timedelta(seconds=0.3),
)


def no_delay(*_: object) -> timedelta:
    return timedelta(0)


class Bench:
    """Clients and a broker on one Redis, and servers started on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis: RedisClient = open_redis(url)
        self.blocking: RedisClient = open_blocking_redis(url, pool_size=64)
        self.client = Client(self.redis)
        self.broker = Broker(self.redis, limits=BrokerLimits(lease=QUICK.lease))
        self.servers: list[Server] = []

    async def close(self) -> None:
        for server in self.servers:
            await server.stop()
        await self.redis.aclose()
        await self.blocking.aclose()

    def make_server(
        self, handler: Handler | HandlerFunction, *, threaded: bool = True, **settings: Any
    ) -> Server:
        config = ServerConfig(
            **{
                "concurrency": 4,
                "shutdown_timeout": timedelta(seconds=0.2),
                "cancel_grace": timedelta(seconds=0.3),
                "retry_delay": no_delay,
                "intervals": QUICK,
                **settings,
            }
        )
        server = Server(
            self.redis,
            self.blocking,
            FunctionHandler(handler) if callable(handler) else handler,
            config,
            heartbeat_redis=self._open_heartbeat if threaded else None,
        )
        self.servers.append(server)
        return server

    async def serve(self, handler: Handler | HandlerFunction, **settings: Any) -> Server:
        server = self.make_server(handler, **settings)
        await server.start()
        return server

    async def enqueue(self, *types: str, queue: str = "default", **options: Any) -> list[str]:
        infos = [
            await self.client.enqueue(Task(kind, kind.encode()), EnqueueOptions(queue=queue, **options))
            for kind in types
        ]
        return [info.id for info in infos]

    async def enqueue_many(self, count: int, kind: str = "work", queue: str = "default") -> list[str]:
        items = [(Task(kind), EnqueueOptions(queue=queue, max_retry=50)) for _ in range(count)]
        return [result.task_id for result in await self.client.enqueue_many(items)]

    async def size(self, state: str, queue: str = "default") -> int:
        command = "LLEN" if state in {"pending", "active"} else "ZCARD"
        return int(await self.redis.execute_command(command, getattr(queue_keys(queue), state)))

    async def ids(self, state: str, queue: str = "default") -> list[str]:
        command = "LRANGE" if state in {"pending", "active"} else "ZRANGE"
        reply = await self.redis.execute_command(command, getattr(queue_keys(queue), state), 0, -1)
        return [task_id.decode() for task_id in reply]

    async def keys(self, pattern: str) -> list[bytes]:
        """Return the keys of all nodes."""
        everywhere = {"target_nodes": RedisCluster.PRIMARIES} if isinstance(self.redis, RedisCluster) else {}
        found: list[bytes] = await self.redis.execute_command("KEYS", pattern, **everywhere)
        return found

    async def field(self, task_id: str, name: str, queue: str = "default") -> bytes | None:
        value: bytes | None = await self.redis.execute_command("HGET", queue_keys(queue).task(task_id), name)
        return value

    async def counter(self, name: str, queue: str = "default") -> int:
        return int(await self.redis.execute_command("GET", getattr(queue_keys(queue), name)) or 0)

    async def wait_size(self, state: str, count: int, queue: str = "default", timeout: float = 10) -> None:  # noqa: ASYNC109 - passed on to wait_until
        async def reached() -> bool:
            return await self.size(state, queue) == count

        await wait_until(reached, timeout=timeout, description=f"{count} {state} in {queue}")

    def _open_heartbeat(self) -> RedisClient:
        return open_redis(self.url, pool_size=2)


@asynccontextmanager
async def open_bench(url: str) -> AsyncIterator[Bench]:
    bench = Bench(url)
    try:
        yield bench
    finally:
        await bench.close()


class Recorder:
    """A recorder handles tasks and keeps their ids, in the order they came."""

    def __init__(self, then: Callable[[ProcessingTask], object] | None = None) -> None:
        self.seen: list[ProcessingTask] = []
        self._then = then

    async def process_task(self, task: ProcessingTask) -> None:
        self.seen.append(task)
        if self._then is not None:
            self._then(task)


class Gate:
    """A gate holds every handler until it is opened, and counts how they ended."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.entered: list[str] = []
        self.cancelled: list[str] = []

    async def process_task(self, task: ProcessingTask) -> None:
        self.entered.append(task.id)
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled.append(task.id)
            raise
