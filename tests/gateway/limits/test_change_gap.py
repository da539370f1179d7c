import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from tests.waiting import wait_until

from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import CardResting, Transient
from junhong_cmp.gateway.limits import keys
from junhong_cmp.gateway.limits.change_gap import NoChangeGap, RedisChangeGap

CARD = CardRef(7, "89860012345678900017")
REST = timedelta(minutes=3)


@pytest.fixture
def gap(redis: Redis) -> RedisChangeGap:
    return RedisChangeGap(redis)


async def test_a_card_rests_after_a_change_and_others_do_not(gap: RedisChangeGap) -> None:
    await gap.take(CARD, "op-1", REST)
    with pytest.raises(CardResting) as caught:
        await gap.take(CARD, "op-2", REST)
    assert REST - timedelta(seconds=5) < caught.value.wait <= REST
    await gap.take(CardRef(8, "89860012345678900025"), "op-3", REST)


async def test_of_a_fleet_of_senders_one_goes_on(redis_url: str, redis: Redis) -> None:
    clients = [open_redis(redis_url) for _ in range(4)]
    try:
        outcomes = await asyncio.gather(
            *(
                RedisChangeGap(client).take(CARD, f"op-{sender}-{number}", REST)
                for sender, client in enumerate(clients)
                for number in range(25)
            ),
            return_exceptions=True,
        )
    finally:
        for client in clients:
            await client.aclose()
    assert sum(outcome is None for outcome in outcomes) == 1
    assert all(isinstance(outcome, CardResting) for outcome in outcomes if outcome is not None)


async def test_a_sender_that_dies_leaves_the_card_resting_for_a_while_only(
    gap: RedisChangeGap, redis: Redis
) -> None:
    await gap.take(CARD, "op-of-the-dead", timedelta(milliseconds=50))
    assert 0 < await redis.pttl(keys.last_change(CARD.card_id)) <= 50

    async def taken() -> bool:
        try:
            await gap.take(CARD, "op-2", REST)
        except CardResting:
            return False
        return True

    await wait_until(taken, description="the rest is over")


async def test_what_was_not_sent_is_given_back_by_its_holder_only(gap: RedisChangeGap) -> None:
    await gap.take(CARD, "op-1", REST)
    await gap.give_back(CARD, "op-2")
    with pytest.raises(CardResting):
        await gap.take(CARD, "op-2", REST)
    await gap.give_back(CARD, "op-1")
    await gap.take(CARD, "op-2", REST)


async def test_no_rest_touches_nothing(gap: RedisChangeGap, redis: Redis) -> None:
    for _ in range(2):
        await gap.take(CARD, "op", timedelta(0))
    assert await redis.dbsize() == 0
    for _ in range(2):
        await NoChangeGap().take(CARD, "op", REST)


async def test_without_redis_nothing_is_sent() -> None:
    client = open_redis("redis-socket:///nonexistent/redis.sock")
    gap = RedisChangeGap(client)
    with pytest.raises(Transient) as caught:
        await gap.take(CARD, "op", REST)
    assert caught.value.maybe_executed is False
    await gap.give_back(CARD, "op")
    await client.aclose()
