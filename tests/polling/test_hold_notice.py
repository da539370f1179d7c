"""The notice that nothing is claimed for a while."""

from datetime import timedelta

from redis.asyncio import Redis
from tests.waiting import wait_until

from junhong_cmp.polling.hold_notice import held_for, post_hold, withdraw_hold


async def test_it_lasts_until_it_is_withdrawn(redis: Redis) -> None:
    assert await held_for(redis) is None
    await post_hold(redis, timedelta(minutes=1))
    left = await held_for(redis)
    assert left is not None
    assert timedelta() < left <= timedelta(minutes=1)
    await withdraw_hold(redis)
    assert await held_for(redis) is None
    await withdraw_hold(redis)


async def test_it_goes_by_itself_with_a_leader_that_died(redis: Redis) -> None:
    await post_hold(redis, timedelta(milliseconds=50))

    async def over() -> bool:
        return await held_for(redis) is None

    await wait_until(over, description="the notice has expired")
