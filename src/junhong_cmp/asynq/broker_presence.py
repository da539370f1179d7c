"""What a process shows of itself, and the switches of a queue (rdb.go: WriteServerState, Pause)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from junhong_cmp.asynq.asynq_pb2 import ServerInfo, WorkerInfo
from junhong_cmp.asynq.cancel_requests import CancelPolicy, CancelRequest, encode_requests
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import (
    ALL_QUEUES,
    ALL_SERVERS,
    ALL_WORKERS,
    CANCEL_CHANNEL,
    ProcessKeys,
    queue_keys,
)
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg

_WRITE_STATE: Final = LuaScript.load("junhong_cmp.asynq", "write_server_state")


async def register_queues(redis: RedisClient, queues: Sequence[str]) -> None:
    """Enter queues in the registry."""
    if queues:
        await redis.execute_command("SADD", ALL_QUEUES, *queues)


async def write_server_state(
    redis: RedisClient, info: ServerInfo, workers: Sequence[WorkerInfo], now: float, ttl: timedelta
) -> None:
    """Show a server and its workers."""
    keys = _process_keys(info)
    ttl_s = max(1, int(ttl.total_seconds()))
    # The registries live in slots of their own, so they are not part of the script.
    pipe = redis.pipeline(transaction=False)
    pipe.execute_command("ZADD", ALL_SERVERS, int(now) + ttl_s, keys.server)
    pipe.execute_command("ZADD", ALL_WORKERS, int(now) + ttl_s, keys.workers)
    await pipe.execute()
    args: list[ScriptArg] = [ttl_s, info.SerializeToString(deterministic=True)]
    for worker in workers:
        args += (worker.task_id, worker.SerializeToString(deterministic=True))
    await _WRITE_STATE.run(redis, [keys.server, keys.workers], args)


async def clear_server_state(redis: RedisClient, info: ServerInfo) -> None:
    """Remove a server and its workers."""
    keys = _process_keys(info)
    pipe = redis.pipeline(transaction=False)
    pipe.execute_command("ZREM", ALL_SERVERS, keys.server)
    pipe.execute_command("ZREM", ALL_WORKERS, keys.workers)
    pipe.execute_command("DEL", keys.server, keys.workers)
    await pipe.execute()


async def publish_cancel(redis: RedisClient, task_id: str, policy: CancelPolicy | None = None) -> int:
    """Publish a request to all servers."""
    heard = 0
    for message in encode_requests(CancelRequest(task_id, policy)):
        heard = int(await redis.execute_command("PUBLISH", CANCEL_CHANNEL, message))
    return heard


async def pause(redis: RedisClient, queue: str, now: float) -> bool:
    """Set the switch that stops a queue."""
    return bool(await redis.execute_command("SET", queue_keys(queue).paused, int(now), "NX"))


async def unpause(redis: RedisClient, queue: str) -> bool:
    """Remove the switch that stops a queue."""
    return bool(await redis.execute_command("DEL", queue_keys(queue).paused))


async def pending_count(redis: RedisClient, queue: str) -> int:
    """Count the waiting tasks of a queue."""
    return int(await redis.execute_command("LLEN", queue_keys(queue).pending))


async def queue_flow(redis: RedisClient, queue: str) -> tuple[int, int]:
    """Count the waiting tasks of a queue, and all it has ever processed; one round trip."""
    names = queue_keys(queue)
    pipe = redis.pipeline(transaction=False)
    pipe.execute_command("LLEN", names.pending)
    pipe.execute_command("GET", names.processed)
    pending, processed = await pipe.execute()
    return int(pending), int(processed) if processed is not None and processed.isdigit() else 0


def _process_keys(info: ServerInfo) -> ProcessKeys:
    return ProcessKeys(f"{info.host}:{info.pid}:{info.server_id}")
