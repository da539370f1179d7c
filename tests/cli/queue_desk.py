"""A queue with tasks in it, for the commands that look into queues and tasks."""

from collections.abc import Sequence
from typing import Any, Final

from redis.asyncio import Redis

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task

QUEUE: Final = "polling[red]"
PREFIX: Final = f"asynq:{{{QUEUE}}}:"


async def put(redis: Redis, *task_ids: str, **options: Any) -> None:
    for task_id in task_ids:
        await Client(redis).enqueue(Task("t", b"{}"), EnqueueOptions(queue=QUEUE, task_id=task_id, **options))


async def finish(redis: Redis, kinds: Sequence[AckKind]) -> None:
    broker = Broker(redis)
    tasks = (await broker.dequeue(QUEUE, len(kinds), owner="w")).tasks
    await broker.ack(QUEUE, [Ack(kind, task, error="boom") for kind, task in zip(kinds, tasks, strict=True)])
