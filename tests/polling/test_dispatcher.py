import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest
from redis.exceptions import RedisError
from tests.faultproxy import FaultProxy
from tests.polling.plant import Plant, add_account, add_cards
from tests.waiting import wait_until

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.connection import open_redis
from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import decode
from junhong_cmp.polling.batch_payload import BatchPayload, decode_poll
from junhong_cmp.polling.dispatcher import PollDispatcher
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shard_scripts import Claim
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_QUEUE, PollPayload, TaskType

QUEUE = queue_keys(POLLING_QUEUE)
SHARD = ShardId(TaskType.POLLING_CARDDATA, 7, 3)
CLAIM = 2_000_000_000_000


def claims(count: int) -> list[Claim]:
    return [Claim(card_id, CLAIM, 1000 + card_id) for card_id in range(1, count + 1)]


async def payloads(redis: Any) -> dict[str, PollPayload | BatchPayload]:
    found = {}
    for task_id in reversed(await redis.lrange(QUEUE.pending, 0, -1)):
        encoded = await redis.hget(QUEUE.task(task_id.decode()), "msg")
        message = decode(encoded, task_id=task_id.decode(), queue=POLLING_QUEUE)
        found[task_id.decode()] = decode_poll(message.payload)
    return found


async def test_claims_of_an_account_with_batches_go_together(redis: Any) -> None:
    dispatcher = PollDispatcher(Client(redis), PollingSettings())
    assert dispatcher.add(SHARD, claims(7), batch_size=3) == 3
    assert await dispatcher.flush(1) == 3
    assert not dispatcher.has_waiting
    sent = await payloads(redis)
    assert list(sent) == [
        f"polling:carddata:1:{CLAIM}:3",
        f"polling:carddata:4:{CLAIM}:3",
        f"polling:carddata:7:{CLAIM}",
    ]
    first, _, last = sent.values()
    assert first == BatchPayload(7, [PollPayload(card, 7, CLAIM, 1000 + card) for card in (1, 2, 3)])
    assert last == PollPayload(7, 7, CLAIM, 1007), "a card alone travels as it always did"


async def test_a_claim_that_ran_out_needs_no_task(redis: Any) -> None:
    dispatcher = PollDispatcher(Client(redis), PollingSettings())
    dispatcher.add(SHARD, claims(4), batch_size=2)
    assert await dispatcher.flush(CLAIM) == 0
    assert not dispatcher.has_waiting


async def test_a_batch_whose_reply_was_lost_is_enqueued_once(redis: Any, redis_url: str) -> None:
    async with FaultProxy(redis_url) as proxy:
        client = open_redis(proxy.url, socket_timeout=timedelta(seconds=2))
        dispatcher = PollDispatcher(Client(client), PollingSettings())
        dispatcher.add(SHARD, claims(1))
        await dispatcher.flush(1)  # the script is known to the server from here on
        dispatcher.add(SHARD, [Claim(card, CLAIM, 1) for card in range(10, 20)], batch_size=5)
        proxy.cut_after(b"EVALSHA")
        with pytest.raises((RedisError, OSError)):
            await dispatcher.flush(1)
        assert dispatcher.has_waiting
        while dispatcher.has_waiting:
            await dispatcher.flush(1)
        await client.aclose()
    cards = [
        [poll.card_id for poll in payload.cards]
        for payload in (await payloads(redis)).values()
        if isinstance(payload, BatchPayload)
    ]
    assert cards == [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]


async def test_the_leader_fills_calls_and_pays_one_token_for_each(plant: Plant) -> None:
    account = await add_account(plant.pool, "batches", batch_size=50, qps=20.0)
    cards = await add_cards(plant.pool, account, 400, first=1000)
    await plant.config.refresh()
    await plant.queue.add_many(SHARD.task_type, account.id, [(card.id, 1000) for card in cards])
    scheduler = plant.scheduler()
    began = asyncio.get_running_loop().time()
    await scheduler.start()

    async def all_handed_over() -> bool:
        return sum(await batch_lengths(plant.redis)) == 400

    await wait_until(all_handed_over, description="every card handed over")
    await scheduler.stop()
    elapsed = asyncio.get_running_loop().time() - began
    lengths = await batch_lengths(plant.redis)
    assert max(lengths) == 50
    assert len(lengths) <= 20 * elapsed + 2 + len(plant.queue.shards((account.id,), (SHARD.task_type,)))
    ids = [
        [poll.card_id for poll in getattr(one, "cards", [one])]
        for one in (await payloads(plant.redis)).values()
    ]
    assert sorted(itertools.chain(*ids)) == sorted(card.id for card in cards)


async def batch_lengths(redis: Any) -> list[int]:
    sent = (await payloads(redis)).values()
    return [len(one.cards) if isinstance(one, BatchPayload) else 1 for one in sent]
