from redis.asyncio import Redis
from tests.waiting import wait_until

from junhong_cmp.leadership import keys
from junhong_cmp.leadership.epoch import FencingEpoch


async def test_the_first_epoch_is_the_time(redis: Redis) -> None:
    seconds, _ = await redis.time()
    assert await FencingEpoch().next(redis) // 1000 - seconds in (0, 1)


async def test_epochs_grow_within_one_millisecond(redis: Redis) -> None:
    epochs = FencingEpoch()
    given = [await epochs.next(redis) for _ in range(20)]
    assert given == sorted(set(given))


async def test_an_epoch_ahead_of_the_time_is_exceeded(redis: Redis) -> None:
    await redis.hset(keys.lease(), "epoch", "9000000000000000")
    assert await FencingEpoch().next(redis) == 9000000000000001


async def test_epochs_grow_over_lost_data(redis: Redis) -> None:
    before = await FencingEpoch().next(redis)
    await redis.flushall()

    async def time_went_on() -> bool:
        seconds, microseconds = await redis.time()
        return seconds * 1000 + microseconds // 1000 > before

    await wait_until(time_went_on, description="the next millisecond")
    assert await FencingEpoch().next(redis) > before
