"""This package at work beside Go's: clients, servers in this process, and workers that can be killed."""

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.interop.programs import running

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import RedisClient, open_blocking_redis, open_redis
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.mux import FunctionHandler, HandlerFunction
from junhong_cmp.asynq.scheduler import CronEntry, Scheduler
from junhong_cmp.asynq.server import Server
from junhong_cmp.asynq.server_config import Intervals, ServerConfig
from junhong_cmp.asynq.task import EnqueueOptions, Task, TaskInfo

QUEUE = "golden"
EXECUTIONS = "interop:executions"
WORKERS = "interop:workers"
_WORKER = Path(__file__).with_name("python_worker.py")


class PythonSide:
    """Our half of a fleet on one Redis."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis: RedisClient = open_redis(url)
        self.client = Client(self.redis)
        self.broker = Broker(self.redis)
        self.inspector = Inspector(self.redis)

    async def close(self) -> None:
        await self.redis.aclose()

    async def put(self, task_id: str, payload: bytes = b"{}", **options: Any) -> TaskInfo:
        task = Task(f"t:{task_id}", payload, {"trace": task_id})
        return await self.client.enqueue(task, EnqueueOptions(queue=QUEUE, task_id=task_id, **options))

    @asynccontextmanager
    async def serving(self, handler: HandlerFunction, **settings: Any) -> AsyncIterator[Server]:
        """Serve the queue in this process."""
        blocking = open_blocking_redis(self.url)
        config = ServerConfig(
            **{
                "concurrency": 4,
                "queues": {QUEUE: 1},
                "shutdown_timeout": timedelta(seconds=1),
                "retry_delay": lambda *_: timedelta(hours=1),
                "intervals": Intervals(
                    forward=timedelta(seconds=0.2),
                    heartbeat=timedelta(seconds=0.5),
                    paused_check=timedelta(seconds=0.2),
                    recover=timedelta(seconds=1),
                ),
                **settings,
            }
        )
        server = Server(self.redis, blocking, FunctionHandler(handler), config)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
            await blocking.aclose()

    @asynccontextmanager
    async def scheduling(self, *entries: CronEntry) -> AsyncIterator[None]:
        scheduler = Scheduler(self.redis, entries)
        await scheduler.start()
        try:
            yield
        finally:
            await scheduler.stop()

    def working(self, name: str, *flags: str) -> AbstractAsyncContextManager[Any]:
        """Run a worker process of ours."""
        return running(sys.executable, _WORKER, self.url, QUEUE, name, *flags)

    async def executions(self) -> dict[str, int]:
        """How often each task was run, by whichever language."""
        return await self._counts(EXECUTIONS)

    async def shares(self) -> dict[str, int]:
        """How many runs each worker did."""
        return await self._counts(WORKERS)

    async def executed(self, task_id: str) -> int:
        return int(await self.redis.execute_command("HGET", EXECUTIONS, task_id) or 0)

    async def servers(self) -> int:
        return len(await self.inspector.servers())

    async def state(self, task_id: str) -> str | None:
        raw = await self.redis.execute_command("HGET", f"asynq:{{{QUEUE}}}:t:{task_id}", "state")
        return raw.decode() if raw is not None else None

    async def _counts(self, key: str) -> dict[str, int]:
        flat = await self.redis.execute_command("HGETALL", key)
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(): int(count) for name, count in pairs}
