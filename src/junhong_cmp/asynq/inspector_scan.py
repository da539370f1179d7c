"""Walking over the keys of one queue, in steps that never block the server."""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from redis.asyncio.cluster import RedisCluster

from junhong_cmp.asynq.connection import RedisClient

_STEP: Final = 500
_GLOB_SPECIAL: Final = re.compile(r"([\\*?\[\]^])")


async def scan_keys(
    redis: RedisClient, prefix: str, *, apart_from: Sequence[str] = ()
) -> AsyncIterator[list[bytes]]:
    """Yield the keys that begin with ``prefix`` and with none of ``apart_from``, in batches.

    A key that is there all the while is found; one may come twice. The whole database is walked over, a few
    hundred keys a command; of a cluster only the node that serves the prefix's slot.
    """
    pattern = _GLOB_SPECIAL.sub(r"\\\1", prefix) + "*"
    others = tuple(other.encode() for other in apart_from)
    options = await _node_options(redis, prefix)
    cursor = 0
    while True:
        cursor, found = await _scan(redis, cursor, pattern, options)
        batch = [key for key in found if not key.startswith(others)] if others else found
        if batch:
            yield batch
        if cursor == 0:
            return


async def _scan(
    redis: RedisClient, cursor: int, pattern: str, options: dict[str, object]
) -> tuple[int, list[bytes]]:
    reply = await redis.execute_command("SCAN", cursor, "MATCH", pattern, "COUNT", _STEP, **options)
    at = reply[0]
    if isinstance(at, dict):  # a cluster tells where it stands by node
        (at,) = at.values()
    return int(at), list(reply[1])


async def _node_options(redis: RedisClient, prefix: str) -> dict[str, object]:
    if not isinstance(redis, RedisCluster):
        return {}
    await redis.initialize()
    return {"target_nodes": redis.get_node_from_key(prefix)}
