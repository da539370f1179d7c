"""Candidates and leases for tests."""

from datetime import timedelta
from typing import Any

from junhong_cmp.leadership import keys
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.times import LeaseTimes

QUICK = LeaseTimes(
    ttl=timedelta(seconds=1), renew=timedelta(milliseconds=300), retry=timedelta(milliseconds=100)
)
"""For tests in which the lease is to change hands."""
STEADY = LeaseTimes(ttl=timedelta(seconds=4), renew=timedelta(seconds=1), retry=timedelta(milliseconds=200))
"""For tests in which it must not, however busy the machine is."""


def candidate(name: str) -> Candidate:
    return Candidate.of_this_process(name)


async def field(redis: Any, name: str) -> str:
    value = await redis.hget(keys.lease(), name)
    return "" if value is None else value.decode()


async def server_ms(redis: Any) -> int:
    seconds, microseconds = await redis.time()
    return int(seconds * 1000 + microseconds // 1000)


async def shift_expiry(redis: Any, by: timedelta) -> None:
    """Do to the lease what a step of the server's clock would have done to it, the other way round."""
    expires = int(await field(redis, "expires")) + round(by.total_seconds() * 1000)
    await redis.hset(keys.lease(), "expires", str(expires))
