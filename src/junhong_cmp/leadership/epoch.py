"""The number of a leader's term, by which shards tell a present leader from a past one."""

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.leadership import keys


class FencingEpoch:
    """A fencing epoch gives every new term a number higher than any before, even over lost data."""

    def __init__(self) -> None:
        self._next = LuaScript.load(__package__ or "", "next_epoch")

    async def next(self, redis: RedisClient) -> int:
        """Open a new term and return its epoch: ``max(previous + 1, Redis time in ms)``."""
        return int(await self._next.run(redis, (keys.lease(),)))
