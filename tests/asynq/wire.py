"""Reading and preparing Redis as it lies, for tests of the wire format."""

from typing import Any

from redis.asyncio import Redis

from junhong_cmp.asynq.broker import Broker
from junhong_cmp.asynq.broker_types import LeasedTask
from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, Task

QUEUE = "q"
PREFIX = "asynq:{q}:"
NOW = 1_800_000_000.25
"""2027-01-15, a quarter past a full second."""


class Clock:
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def put(
    redis: Redis, *task_ids: str, options: dict[str, Any] | None = None, payload: bytes = b"{}"
) -> None:
    """Enqueue tasks of type ``t`` into the queue ``q``."""
    client = Client(redis, clock=Clock())
    for task_id in task_ids:
        await client.enqueue(
            Task("t", payload), EnqueueOptions(queue=QUEUE, task_id=task_id, **(options or {}))
        )


async def take(redis: Redis, count: int = 10, *, clock: Clock | None = None) -> list[LeasedTask]:
    broker = Broker(redis, clock=clock or Clock())
    return (await broker.dequeue(QUEUE, count, owner="w")).tasks


async def fields(redis: Redis, task_id: str) -> dict[str, bytes]:
    raw: Any = await redis.hgetall(f"{PREFIX}t:{task_id}")
    return {name.decode(): value for name, value in raw.items()}


async def state(redis: Redis, task_id: str) -> str | None:
    raw: Any = await redis.hget(f"{PREFIX}t:{task_id}", "state")
    return raw.decode() if raw is not None else None


async def ids(redis: Redis, name: str) -> list[str]:
    """Ids of a list of the queue, left to right."""
    found: Any = await redis.lrange(PREFIX + name, 0, -1)
    return [raw.decode() for raw in found]


async def scores(redis: Redis, name: str) -> dict[str, int]:
    """Ids and scores of a sorted set of the queue."""
    found: Any = await redis.zrange(PREFIX + name, 0, -1, withscores=True)
    return {member.decode(): int(score) for member, score in found}


async def keys(redis: Redis) -> set[str]:
    """All keys but the registry of queues and the counters."""
    raw: Any = await redis.keys("*")
    found = {key.decode() for key in raw}
    return {
        key for key in found if key != "asynq:queues" and ":processed" not in key and ":failed" not in key
    }
