"""The notice a leader leaves in Redis while it claims nothing, so that others can say why polls rest."""

from datetime import timedelta

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.polling import keys
from junhong_cmp.polling.due import milliseconds


async def post_hold(redis: RedisClient, wait: timedelta) -> None:
    """Let everybody know that nothing is claimed for ``wait``; the notice goes by itself with that time.

    Raises:
        redis.exceptions.RedisError, OSError: Redis failed.

    """
    await redis.execute_command("SET", keys.hold(), milliseconds(wait), "PX", milliseconds(wait))


async def withdraw_hold(redis: RedisClient) -> None:
    """Let everybody know that claims are given again.

    Raises:
        redis.exceptions.RedisError, OSError: Redis failed.

    """
    await redis.execute_command("DEL", keys.hold())


async def held_for(redis: RedisClient) -> timedelta | None:
    """Return for how long nothing will be claimed yet, by the clock of Redis; None when claims are given.

    Raises:
        redis.exceptions.RedisError, OSError: Redis failed.

    """
    left_ms = int(await redis.execute_command("PTTL", keys.hold()))
    return timedelta(milliseconds=left_ms) if left_ms > 0 else None
