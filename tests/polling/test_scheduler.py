import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_account, add_cards
from tests.waiting import wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.asynq.message import decode
from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.leadership.epoch import FencingEpoch
from junhong_cmp.polling import keys
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.scheduler import PollingScheduler
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_QUEUE, PollPayload, TaskType

CARDDATA = TaskType.POLLING_CARDDATA
QUEUE = queue_keys(POLLING_QUEUE)
BRIEF = PollingSettings(turn_timeout=timedelta(seconds=0.5), slot_lease=timedelta(seconds=0.5))
"""Turns so short that polls a lost Redis may have forgotten hold claims back for half a second."""


@pytest.fixture
async def scheduler(plant: Plant) -> AsyncIterator[PollingScheduler]:
    scheduler = plant.scheduler()
    yield scheduler
    await scheduler.stop()


async def pending(redis: Any) -> list[str]:
    ids: list[bytes] = await redis.execute_command("LRANGE", QUEUE.pending, 0, -1)
    return [task_id.decode() for task_id in ids]


async def make_due(plant: Plant, cards: list[Card], kind: TaskType = CARDDATA) -> None:
    await plant.queue.add_many(kind, cards[0].account_id, [(card.id, 1000 + card.id) for card in cards])


async def wait_for_pending(redis: Any, count: int) -> None:
    async def there() -> bool:
        return bool(await redis.llen(QUEUE.pending) == count)

    await wait_until(there, description=f"{count} pending polls")


async def test_due_cards_become_tasks_once_and_others_wait(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler
) -> None:
    cards = await add_cards(plant.pool, account, 300)
    await make_due(plant, cards[:200])
    later = await plant.queue.now_ms() + 3_600_000
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, later) for card in cards[200:]])
    await scheduler.start()
    await wait_for_pending(plant.redis, 200)
    ids = await pending(plant.redis)
    scores = {card.id: await plant.score(card) for card in cards[:200]}
    assert set(ids) == {f"polling:carddata:{card}:{claim}" for card, claim in scores.items()}
    encoded: bytes = await plant.redis.execute_command("HGET", QUEUE.task(ids[0]), "msg")
    message = decode(encoded, task_id=ids[0], queue=POLLING_QUEUE)
    payload = PollPayload.decode(message.payload)
    assert payload.claim == scores[payload.card_id]
    assert payload.due == 1000 + payload.card_id
    assert (message.retry, message.timeout, message.retention) == (1, 60, 0)
    assert (await plant.totals())["due"] == 200


async def test_a_card_that_becomes_due_is_claimed_at_its_time(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    due = await plant.queue.now_ms() + 400
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, due)])
    await scheduler.start()
    await wait_for_pending(plant.redis, 1)
    claimed_at = (await plant.score(card) or 0) - 120_000
    assert due <= claimed_at <= due + 150


async def test_claims_follow_the_rate_of_the_account(plant: Plant, account: CarrierAccount) -> None:
    await plant.pool.execute("UPDATE carrier_account SET qps = 20")
    await plant.config.refresh()
    await make_due(plant, await add_cards(plant.pool, account, 500))
    scheduler = plant.scheduler()
    began = asyncio.get_running_loop().time()
    await scheduler.start()

    async def some() -> bool:
        return bool(await plant.redis.llen(QUEUE.pending) >= 30)

    await wait_until(some, description="30 claims")
    elapsed = asyncio.get_running_loop().time() - began
    claimed = await plant.redis.llen(QUEUE.pending)
    await scheduler.stop()
    assert claimed <= 20 * elapsed + 3
    assert elapsed < 3


async def test_claiming_stops_at_the_high_water_mark_and_resumes(
    plant: Plant, account: CarrierAccount
) -> None:
    plant.settings = PollingSettings(high_water=50, low_water=20, idle_tick=timedelta(milliseconds=40))
    await make_due(plant, await add_cards(plant.pool, account, 120))
    scheduler = plant.scheduler()
    with capture_logs() as logs:
        await scheduler.start()
        await wait_until(
            lambda: "轮询积压达到高水位，暂停认领" in [entry["event"] for entry in logs],
            description="the high-water mark",
        )
        assert await plant.redis.llen(QUEUE.pending) == 50
        await plant.redis.ltrim(QUEUE.pending, 0, 9)
        await wait_for_pending(plant.redis, 50)
        assert "轮询积压回落，恢复认领" in [entry["event"] for entry in logs]
    await scheduler.stop()


@pytest.mark.parametrize("how", ["paused", "disabled"])
async def test_an_account_at_rest_is_left_alone(plant: Plant, account: CarrierAccount, how: str) -> None:
    other = await add_account(plant.pool, "other")
    async with plant.pool.acquire() as conn:
        if how == "paused":
            await pause_account(conn, account.id, datetime.now(UTC) + timedelta(hours=1), "test")
        else:
            await conn.execute("UPDATE carrier_account SET polling_enabled = false WHERE id = $1", account.id)
    await plant.config.refresh()
    await make_due(plant, await add_cards(plant.pool, account, 5))
    working = await add_cards(plant.pool, other, 5, first=100)
    await make_due(plant, working)
    scheduler = plant.scheduler()
    await scheduler.start()
    await wait_for_pending(plant.redis, 5)
    await scheduler.stop()
    assert {int(task_id.split(":")[2]) for task_id in await pending(plant.redis)} == {
        card.id for card in working
    }


async def test_an_account_whose_calls_hang_is_not_given_more(plant: Plant, account: CarrierAccount) -> None:
    await plant.pool.execute("UPDATE carrier_account SET concurrency = 2")
    await plant.config.refresh()
    cards = await add_cards(plant.pool, account, 5)
    for card in cards[:2]:
        await plant.concurrency.acquire(plant.config.snapshot.accounts[account.id], CARDDATA, card.id)
    await make_due(plant, cards)
    other = await add_account(plant.pool, "other")
    await plant.config.refresh()
    (free,) = await add_cards(plant.pool, other, 1, first=100)
    await make_due(plant, [free])
    scheduler = plant.scheduler()
    await scheduler.start()
    await wait_for_pending(plant.redis, 1)
    await scheduler.stop()
    assert [int(task_id.split(":")[2]) for task_id in await pending(plant.redis)] == [free.id]


async def test_without_a_gateway_nothing_is_claimed(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 1)
    await make_due(plant, cards)
    scheduler = plant.scheduler(has_gateway=False)
    with capture_logs() as logs:
        await scheduler.start()
        await wait_until(lambda: logs, description="the warning")
    assert logs[0]["event"] == "网关未配置，不认领到期的卡"
    await scheduler.stop()
    assert await plant.score(cards[0]) == 1000 + cards[0].id


async def test_without_a_lease_a_later_term_ends_an_earlier_one_for_good(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler
) -> None:
    """It dies of it, and its process with it: nobody would tell it when the other leads no more."""
    await make_due(plant, await add_cards(plant.pool, account, 1))
    await scheduler.start()
    await wait_for_pending(plant.redis, 1)
    with capture_logs() as logs:
        await plant.queue.seal(await FencingEpoch().next(plant.redis), plant.queue.shards([account.id]))
        await wait_until(
            lambda: "操作被隔离：任期已过期，停止调度" in [entry["event"] for entry in logs],
            description="the refusal",
        )
    await make_due(plant, await add_cards(plant.pool, account, 1, first=50))
    successor = plant.scheduler()
    await successor.start()
    await wait_for_pending(plant.redis, 2)
    await successor.stop()
    with pytest.raises(FencedError):
        await scheduler.stop()


async def test_lost_data_opens_a_new_term_and_is_reported(plant: Plant, account: CarrierAccount) -> None:
    lost = asyncio.Event()
    scheduler = plant.scheduler(on_lost_data=lost.set, settings=BRIEF)
    cards = await add_cards(plant.pool, account, 1)
    await make_due(plant, cards)
    await scheduler.start()
    await wait_for_pending(plant.redis, 1)
    with capture_logs() as logs:
        await plant.redis.flushall()
        await wait_until(lost.is_set, description="the report")
    assert "检测到 Redis 数据丢失，开始全量初始化" in [entry["event"] for entry in logs]
    await make_due(plant, cards)
    await wait_for_pending(plant.redis, 1)
    await scheduler.stop()


async def test_over_a_lost_redis_nothing_is_claimed_until_forgotten_polls_have_ended(
    plant: Plant, account: CarrierAccount
) -> None:
    lost = asyncio.Event()
    scheduler = plant.scheduler(on_lost_data=lost.set, settings=BRIEF)
    cards = await add_cards(plant.pool, account, 3)
    await make_due(plant, cards)
    await scheduler.start()
    await wait_for_pending(plant.redis, 3)
    with capture_logs() as logs:
        flushed = time.monotonic()
        await plant.redis.flushall()
        await make_due(plant, cards)  # the initializer does not wait
        await wait_for_pending(plant.redis, 3)
    await scheduler.stop()
    assert time.monotonic() - flushed >= BRIEF.slot_lease.total_seconds()
    [entry] = [entry for entry in logs if entry["event"].startswith("Redis 丢失过数据，暂缓认领")]
    assert entry["wait_s"] == BRIEF.slot_lease.total_seconds()


async def test_it_outlives_a_restart_of_redis(
    plant: Plant, account: CarrierAccount, redis_server: EmbeddedRedis
) -> None:
    scheduler = plant.scheduler()
    await scheduler.start()
    with capture_logs() as logs:
        await redis_server.stop()
        await wait_until(
            lambda: "Redis 操作失败，将自动重试" in [entry["event"] for entry in logs],
            description="the fault",
        )
        await redis_server.start()
        await make_due(plant, await add_cards(plant.pool, account, 3))
        await wait_for_pending(plant.redis, 3)
    await scheduler.stop()


async def test_one_broken_shard_stops_no_other(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler
) -> None:
    cards = await add_cards(plant.pool, account, 40)
    broken = plant.queue.shard(CARDDATA, account.id, cards[0].id)
    whole = [card for card in cards if plant.queue.shard(CARDDATA, account.id, card.id) != broken]
    await plant.redis.set(keys.shard_due(broken), "not a set")
    await make_due(plant, whole)
    await scheduler.start()
    await wait_for_pending(plant.redis, len(whole))


@pytest.mark.parametrize("part", ["fence", "claim", "slots"])
async def test_a_foreign_value_under_one_key_stops_no_other_account(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler, part: str
) -> None:
    other = await add_account(plant.pool, "other")
    await plant.config.refresh()
    for shard in plant.queue.shards([account.id]):
        name = {
            "fence": keys.shard_fence(shard),
            "claim": keys.shard_claim(shard),
            "slots": keys.account_slots(account.id),
        }[part]
        await plant.redis.delete(name)
        await plant.redis.lpush(name, "foreign")
    await make_due(plant, await add_cards(plant.pool, other, 4))
    await make_due(plant, await add_cards(plant.pool, account, 4, first=50))
    await scheduler.start()
    await wait_for_pending(plant.redis, 4)


async def test_a_new_account_is_sealed_before_its_first_claim(
    plant: Plant, scheduler: PollingScheduler
) -> None:
    await scheduler.start()
    other = await add_account(plant.pool, "other")
    await plant.config.refresh()
    await make_due(plant, await add_cards(plant.pool, other, 4))
    await wait_for_pending(plant.redis, 4)


async def test_start_and_stop_bear_being_repeated(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 4)
    await make_due(plant, cards)
    scheduler = plant.scheduler()
    for _ in range(10):
        await scheduler.start()
        await scheduler.stop()
    await scheduler.stop()
    await scheduler.start()
    await wait_for_pending(plant.redis, 4)
    await scheduler.stop()


async def test_a_card_that_must_be_polled_now_is_claimed_without_a_look_at_all_shards(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    await plant.queue.add_many(CARDDATA, account.id, [(card.id, await plant.queue.now_ms() + 3_600_000)])
    await scheduler.start()
    await wait_for_looks(plant.redis, 2)
    before = await calls(plant.redis, "zrangebyscore")
    assert await plant.queue.poll_now(CARDDATA, account.id, [card.id]) == 1
    await wait_for_pending(plant.redis, 1)
    assert await calls(plant.redis, "zrangebyscore") == before + 1


async def test_waiting_costs_the_same_for_any_number_of_shards(
    plant: Plant, account: CarrierAccount, scheduler: PollingScheduler
) -> None:
    for number in range(40):
        await add_account(plant.pool, f"more-{number}")
    await plant.config.refresh()
    await plant.redis.config_resetstat()
    await scheduler.start()

    async def every_shard_has_told_that_it_is_empty() -> bool:
        return await calls(plant.redis, "zrangebyscore") == 41 * 3 * 8

    await wait_until(every_shard_has_told_that_it_is_empty, description="a look at every shard")
    scripts = await calls(plant.redis, "evalsha")
    await wait_for_looks(plant.redis, 6)
    assert await calls(plant.redis, "zrangebyscore") == 41 * 3 * 8
    assert await calls(plant.redis, "evalsha") - scripts <= 10


async def test_a_card_whose_notice_got_lost_is_found_at_the_next_look(plant: Plant) -> None:
    account = next(iter(plant.config.snapshot.accounts.values()))
    plant.queue = PollingQueueManager(plant.redis, recheck=timedelta(milliseconds=500))
    (card,) = await add_cards(plant.pool, account, 1)
    scheduler = plant.scheduler()
    await scheduler.start()
    await wait_for_looks(plant.redis, 2)
    shard = plant.queue.shard(CARDDATA, account.id, card.id)
    await plant.redis.zadd(keys.shard_due(shard), {str(card.id): 1000})
    await wait_for_pending(plant.redis, 1)
    await scheduler.stop()


async def test_a_redis_rolled_back_behind_the_term_is_lost_data(
    plant: Plant, account: CarrierAccount
) -> None:
    lost = asyncio.Event()
    scheduler = plant.scheduler(on_lost_data=lost.set, settings=BRIEF)
    await scheduler.start()
    await wait_for_looks(plant.redis, 2)
    await plant.redis.set(keys.notices_fence(), "5")
    await wait_until(lost.is_set, description="the report")
    await scheduler.stop()


async def test_a_large_account_leaves_room_to_a_small_one(plant: Plant, account: CarrierAccount) -> None:
    plant.settings = PollingSettings(high_water=60, low_water=20)
    small = await add_account(plant.pool, "small")
    await plant.config.refresh()
    await make_due(plant, await add_cards(plant.pool, account, 500))
    few = await add_cards(plant.pool, small, 30, first=1000)
    await make_due(plant, few)
    scheduler = plant.scheduler()
    await scheduler.start()
    await wait_for_pending(plant.redis, 60)
    await scheduler.stop()
    claimed = {int(task_id.split(":")[2]) for task_id in await pending(plant.redis)}
    assert len(claimed & {card.id for card in few}) >= 20


async def test_a_task_type_long_due_leaves_room_to_the_others(plant: Plant, account: CarrierAccount) -> None:
    plant.settings = PollingSettings(high_water=60, low_water=20)
    cards = await add_cards(plant.pool, account, 300)
    await make_due(plant, cards)
    now = await plant.queue.now_ms()
    await plant.queue.add_many(
        TaskType.POLLING_CARDSTATUS, account.id, [(card.id, now - 1) for card in cards]
    )
    scheduler = plant.scheduler()
    await scheduler.start()
    await wait_for_pending(plant.redis, 60)
    await scheduler.stop()
    kinds = Counter(task_id.split(":")[1] for task_id in await pending(plant.redis))
    assert min(kinds["carddata"], kinds["cardstatus"]) >= 20


async def test_more_is_due_than_one_round_or_script_takes(plant: Plant, account: CarrierAccount) -> None:
    plant.settings = PollingSettings(high_water=20_000, low_water=1, unproven_backlog=20_000)
    await plant.pool.execute("UPDATE carrier_account SET qps = 100000, concurrency = 100000")
    await plant.config.refresh()
    await plant.queue.add_many(CARDDATA, account.id, [(card, card) for card in range(1, 12_001)])
    scheduler = plant.scheduler()
    await scheduler.start()
    await wait_for_pending(plant.redis, 12_000)
    await scheduler.stop()
    assert len(set(await pending(plant.redis))) == 12_000


async def calls(redis: Any, command: str) -> int:
    """Count how often a command ran since the server's statistics began, by itself or in scripts."""
    stats = await redis.info("commandstats")
    return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])


async def wait_for_looks(redis: Any, count: int) -> None:
    """Wait until the scheduler has read the notice board some more times: it has begun, and found nothing."""
    before = await calls(redis, "llen")

    async def looked() -> bool:
        return await calls(redis, "llen") >= before + count

    await wait_until(looked, description=f"{count} rounds")
