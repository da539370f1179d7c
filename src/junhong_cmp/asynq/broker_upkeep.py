"""Upkeep of a queue: due tasks move on, lists are repaired, old results deleted (rdb.go, janitor.go)."""

from typing import Final

from junhong_cmp.asynq.broker_types import RepairReport
from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.scripting import LuaScript

_FORWARD: Final = LuaScript.load("junhong_cmp.asynq", "forward")
_REPAIR: Final = LuaScript.load("junhong_cmp.asynq", "repair_orphans")
_DELETE_COMPLETED: Final = LuaScript.load("junhong_cmp.asynq", "_lock", "delete_expired_completed")
_FORWARD_AT_ONCE: Final = 100
_REPAIR_MOST: Final = 20_000


async def forward(redis: RedisClient, queue: str, now: float) -> int:
    """Move due tasks on; see :meth:`Broker.forward`."""
    keys = queue_keys(queue)
    moved = 0
    for source in (keys.scheduled, keys.retry):
        while True:
            count = int(
                await _FORWARD.run(
                    redis,
                    [source, keys.pending, keys.groups, keys.archived],
                    [keys.prefix, int(now), int(now * 1e9), _FORWARD_AT_ONCE],
                )
            )
            moved += count
            if count < _FORWARD_AT_ONCE:
                break
    return moved


async def repair_orphans(redis: RedisClient, queue: str, now: float) -> RepairReport:
    """Repair ``active`` and ``lease``; see :meth:`Broker.repair_orphans`."""
    keys = queue_keys(queue)
    counts = await _REPAIR.run(redis, [keys.active, keys.lease], [keys.task_prefix, int(now), _REPAIR_MOST])
    return RepairReport(*counts)


async def delete_expired_completed(redis: RedisClient, queue: str, now: float, limit: int) -> int:
    """Delete completed tasks; see :meth:`Broker.delete_expired_completed`."""
    keys = queue_keys(queue)
    return int(await _DELETE_COMPLETED.run(redis, [keys.completed], [keys.prefix, int(now), limit]))
