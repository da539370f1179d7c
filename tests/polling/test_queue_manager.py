import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.polling import keys
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.shard_scripts import ShardCounts
from junhong_cmp.polling.tasks import TaskType

CARDDATA = TaskType.POLLING_CARDDATA
MINUTE = timedelta(minutes=1)


async def test_thousands_of_cards_are_added_claimed_started_and_written_back(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    cards = [(card, 1000 + card) for card in range(1, 5001)]
    assert await queue.add_many(CARDDATA, 7, cards) == 5000
    assert await queue.counts([7, 8]) == ShardCounts(5000, 5000, 5000)
    await queue.seal(1, queue.shards([7]))
    shards = queue.shards([7], [CARDDATA])
    batches = await queue.claim_many(dict.fromkeys(shards, 1000), epoch=1, visibility=MINUTE)
    claims = [claim for batch in batches if not isinstance(batch, Exception) for claim in batch.claims]
    assert {claim.card_id for claim in claims} == {card for card, _ in cards}
    started = await asyncio.gather(
        *(queue.start(queue.shard(CARDDATA, 7, one.card_id), one.card_id, one.claim) for one in claims)
    )
    now = await queue.now_ms()
    written = await asyncio.gather(
        *(
            queue.write_back(queue.shard(CARDDATA, 7, one.card_id), one.card_id, start.claim, now + 60_000)
            for one, start in zip(claims, started, strict=True)
            if start is not None
        )
    )
    assert written == [True] * 5000
    assert await queue.counts([7]) == ShardCounts(5000, 0, 0)
    assert await queue.remove(CARDDATA, 7, [(card, "") for card, _ in cards]) == 5000
    await queue.close()


async def test_each_caller_of_a_batch_gets_its_own_answer(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    await queue.add_many(CARDDATA, 7, [(card, card * 10) for card in range(1, 101)])
    removed = await asyncio.gather(
        *(
            queue.remove_claimed(queue.shard(CARDDATA, 7, card), card, card * 10 if card % 3 else 1)
            for card in range(1, 101)
        )
    )
    assert removed == [bool(card % 3) for card in range(1, 101)]


async def test_poll_now_makes_waiting_cards_due(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    await queue.add_many(CARDDATA, 7, [(1, await queue.now_ms() + 600_000), (2, 5)])
    assert await queue.poll_now(CARDDATA, 7, [1, 2, 3]) == 1
    assert (await queue.counts([7])).due == 2


async def test_a_refused_claim_is_raised(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    with pytest.raises(FencedError):
        await queue.claim(queue.shards([7])[0], epoch=1, limit=1, visibility=MINUTE)
    assert await queue.claim_many({}, epoch=1, visibility=MINUTE) == []


async def test_foreign_members_are_told_about_in_one_clean_line(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    shard = queue.shards([7])[0]
    await queue.seal(1, [shard])
    await redis.zadd(keys.shard_due(shard), {b"evil\n\xff" + b"x" * 100: 1})
    with capture_logs() as logs:
        await queue.claim(shard, epoch=1, limit=5, visibility=MINUTE)
    assert logs[0]["event"] == "分片中有不是卡编号的成员，已移除"
    assert "\n" not in logs[0]["members"][0]
    assert len(logs[0]["members"][0]) < 90


async def test_an_error_of_one_shard_reaches_its_callers_only(redis: Redis) -> None:
    queue = PollingQueueManager(redis, shards_per_account=2)
    cards = range(1, 21)
    await redis.set(keys.shard_due(queue.shards([7], [CARDDATA])[0]), "not a set")
    results = await asyncio.gather(
        *(queue.start(queue.shard(CARDDATA, 7, card), card, 5) for card in cards), return_exceptions=True
    )
    broken = [card for card in cards if queue.shard(CARDDATA, 7, card).number == 0]
    failed = [card for card, result in zip(cards, results, strict=True) if isinstance(result, ResponseError)]
    assert failed == broken


async def test_a_broken_shard_keeps_no_other_from_being_changed(redis: Redis) -> None:
    queue = PollingQueueManager(redis, shards_per_account=2)
    broken = queue.shards([7], [CARDDATA])[0]
    await redis.set(keys.shard_due(broken), "not a set")
    await redis.lpush(keys.shard_fence(broken), "no epoch")
    cards = [(card, 1) for card in range(1, 3001)]
    whole = [card for card, _ in cards if queue.shard(CARDDATA, 7, card) != broken]
    with capture_logs() as logs:
        await queue.seal(1, queue.shards([7]))
        assert await queue.add_many(CARDDATA, 7, cards) == len(whole)
        assert (await queue.counts([7])).cards == len(whole)
        assert await queue.scan(broken, 0, 10) == (0, [])
    assert [entry["event"] for entry in logs] == ["分片的键中有异常数据，已跳过"]


async def test_a_redis_that_takes_no_writes_is_no_broken_shard(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    await redis.config_set("maxmemory", 1)
    try:
        for act in (queue.add_many(CARDDATA, 7, [(1, 1)]), queue.seal(1, queue.shards([7]))):
            with pytest.raises(ResponseError, match="maxmemory"):
                await act
    finally:
        await redis.config_set("maxmemory", 0)


async def test_redis_away_is_told_to_every_caller_once(redis: Redis, redis_server: EmbeddedRedis) -> None:
    queue = PollingQueueManager(redis)
    await redis_server.stop()
    results = await asyncio.gather(
        *(queue.start(queue.shard(CARDDATA, 7, card), card, 5) for card in range(1, 200)),
        return_exceptions=True,
    )
    assert all(isinstance(result, FAULTS) for result in results)
    await redis_server.start()
    assert await queue.start(queue.shard(CARDDATA, 7, 1), 1, 5) is None


async def test_a_scan_meets_every_card_and_skips_foreign_members(redis: Redis) -> None:
    queue = PollingQueueManager(redis, shards_per_account=1)
    await queue.add_many(CARDDATA, 7, [(card, card) for card in range(1, 1001)])
    shard = queue.shards([7], [CARDDATA])[0]
    await redis.zadd(keys.shard_due(shard), {"?": 1})
    met: dict[int, int] = {}
    cursor = -1
    while cursor:
        cursor, pairs = await queue.scan(shard, max(cursor, 0), 100)
        met |= dict(pairs)
    assert met == {card: card for card in range(1, 1001)}


async def test_the_generation_marker(redis: Redis) -> None:
    queue = PollingQueueManager(redis)
    assert not await queue.has_generation()
    await queue.mark_generation(5)
    assert await queue.has_generation()
