"""Which Redis process answers: one restarted or replaced may have come back with less than it had."""

import hashlib
from typing import Any, Final

from redis.asyncio.cluster import RedisCluster
from redis.exceptions import NoPermissionError, ResponseError

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.outages import is_outage

UNKNOWN: Final = ""
"""The identity of a Redis that does not tell, such as one behind a proxy; it is always the same."""


async def server_identity(redis: RedisClient) -> str:
    """Return what names the process that answers, or all primaries of a cluster; it survives no restart.

    Raises:
        redis.exceptions.RedisError, OSError: Redis failed.

    """
    options = {"target_nodes": RedisCluster.PRIMARIES} if is_cluster(redis) else {}
    try:
        reply = await redis.execute_command("INFO", "server", **options)
    except NoPermissionError:
        return UNKNOWN
    except ResponseError as error:
        if is_outage(error):
            raise
        return UNKNOWN
    run_ids = _run_ids(reply)
    if len(run_ids) > 1:
        return hashlib.sha256("".join(sorted(run_ids)).encode()).hexdigest()
    return run_ids[0] if run_ids else UNKNOWN


def is_cluster(redis: RedisClient) -> bool:
    """Whether the keys are spread over servers that lose data independently of each other."""
    return isinstance(redis, RedisCluster)


def _run_ids(reply: Any) -> list[str]:
    if not isinstance(reply, dict):
        return []
    if "run_id" in reply:
        return [str(reply["run_id"])]
    return [run_id for node in reply.values() for run_id in _run_ids(node)]
