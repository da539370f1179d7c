"""Claims grow whatever the clock says, and a past leader takes nothing from the notice board."""

from typing import Any

from redis.asyncio import Redis

from junhong_cmp.asynq.scripting import LuaScript

DUE, FENCE, CLAIM = ("polling:{carddata:1:0}:" + part for part in ("due", "fence", "claim"))
AHEAD = 4_000_000_000_000
"""A claim given while the server's clock was far ahead, unix milliseconds."""


async def run(redis: Redis, name: str, keys: list[str], *args: int) -> Any:
    return await LuaScript.load("junhong_cmp.polling", name).run(redis, keys, args)


async def test_a_claim_exceeds_every_claim_given_before(redis: Redis) -> None:
    await redis.set(FENCE, 1)
    await redis.set(CLAIM, AHEAD)
    await redis.zadd(DUE, {"7": 1})
    reply = await run(redis, "claim", [DUE, FENCE, CLAIM], 1, 10, 60_000, 0)
    assert int(reply[3]) == AHEAD + 1
    assert await redis.get(CLAIM) == str(AHEAD + 1).encode()


async def test_a_start_exceeds_every_claim_given_before(redis: Redis) -> None:
    await redis.set(CLAIM, AHEAD)
    await redis.zadd(DUE, {"7": 1_000})
    _, claim, started = await run(redis, "start", [DUE, CLAIM], 30_000, 7, 1_000)
    assert (int(claim), started) == (AHEAD + 1, 1)
    assert await redis.get(CLAIM) == str(AHEAD + 1).encode()


async def test_a_past_leader_takes_no_notices(redis: Redis) -> None:
    board, fence = "polling:{notices}:due", "polling:{notices}:fence"
    await redis.set(fence, 2)
    await redis.zadd(board, {"carddata:1:0": 1})
    assert await run(redis, "take_notices", [board, fence], 1, 10) == [b"FENCED", b"2"]
    assert await redis.zcard(board) == 1
