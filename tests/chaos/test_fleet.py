"""What fleets with short times are tried with, tried twice with the times of production."""

import signal

import pytest
from tests.scenarios.platform import Platform, now_s
from tests.worker_process import WorkerProcess

from junhong_cmp.cards.model import Card
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.embedded.redis_server import EmbeddedRedis

pytestmark = pytest.mark.chaos

INTERVAL_S = 2
CARDS = 300
HEALED_S = 240  # a claim whose task is lost lapses after two minutes

Fleet = tuple[WorkerProcess, WorkerProcess, list[Card]]


@pytest.fixture
async def fleet(platform: Platform) -> Fleet:
    """A leader and a consumer that have polled every card once."""
    await platform.poll_usage_every(INTERVAL_S)
    cards = await platform.issue_cards(CARDS)
    leader = await platform.join("leader", name="leader")
    consumer = await platform.join("consumer", name="consumer")
    await platform.all_polled(cards)
    return leader, consumer, cards


async def still_whole(platform: Platform, cards: list[Card]) -> None:
    await platform.all_polled(cards, since=now_s(), limit_s=HEALED_S)
    assert await platform.members_of_shards() == {str(card.id): 1 for card in cards}
    assert (await platform.carrier_log()).overlaps == ()


async def test_a_killed_consumer_takes_no_card_with_it(platform: Platform, fleet: Fleet) -> None:
    leader, consumer, cards = fleet
    consumer.signal(signal.SIGKILL)
    await consumer.wait_exit()
    await still_whole(platform, cards)
    assert await leader.stop() == 0


async def test_both_services_crash_under_the_fleet(
    platform: Platform, fleet: Fleet, redis_server: EmbeddedRedis, postgres_server: EmbeddedPostgres
) -> None:
    leader, consumer, cards = fleet
    await redis_server.kill()
    await postgres_server.kill()
    await postgres_server.start()
    await redis_server.start()
    await still_whole(platform, cards)
    assert await consumer.stop() == 0
    assert await leader.stop() == 0
