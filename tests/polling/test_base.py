import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_account, add_cards, add_rule, poll_task
from tests.waiting import wait_until

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.store import delete_card, load_cards, set_polling_enabled
from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.postgres_server import EmbeddedPostgres
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.gateway.errors import CardUnknown, GatewayNotConfigured, Saturated, Throttled, Transient
from junhong_cmp.polling import keys
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.tasks import PollPayload, TaskType

HOUR_MS = 3_600_000


async def test_a_good_poll_is_committed_counted_and_due_in_an_hour(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.used_kb[card.id] = 5000
    task = await plant.task_for(card)
    await CarddataHandler(plant.base).process_task(task)
    after = (await load_cards(plant.pool, [card.id]))[card.id]
    assert (after.last_reading_kb, after.carddata.fail_count) == (5000, 0)
    assert after.carddata.succeeded_at is not None
    due = await plant.score(card)
    assert due is not None
    assert 0 < due - await plant.queue.now_ms() <= 1.2 * HOUR_MS
    assert await plant.totals() == {"done": 1}
    assert await plant.redis.zcard(keys.account_slots(account.id)) == 0
    histogram = await plant.pool.fetchval("SELECT lag_histogram FROM poll_minute")
    assert sum(histogram) == 1


async def test_a_task_delivered_twice_asks_once(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    handler = CarddataHandler(plant.base)
    await asyncio.gather(handler.process_task(task), handler.process_task(task))
    await handler.process_task(task)
    assert plant.gateway.calls == [("usage", card.id)]
    assert await plant.totals() == {"done": 1, "superseded": 2}


async def test_an_unreadable_payload_is_never_retried(plant: Plant) -> None:
    task = poll_task(TaskType.POLLING_CARDDATA, PollPayload(1, 1, 1))
    task.payload = b'{"v":0}'
    with pytest.raises(SkipRetry):
        await CarddataHandler(plant.base).process_task(task)


async def test_a_payload_of_a_newer_version_is_offered_to_others_while_its_claim_may_hold(
    plant: Plant,
) -> None:
    handler = CarddataHandler(plant.base)
    task = poll_task(TaskType.POLLING_CARDDATA, PollPayload(1, 1, 1))
    holds = int((datetime.now(UTC) + timedelta(minutes=1)).timestamp() * 1000)
    task.payload = b'{"v":3,"claim":%d}' % holds
    with pytest.raises(PutBack):
        await handler.process_task(task)
    for ended in (b'{"v":3,"claim":1}', b'{"v":3,"claim":"?"}', b'{"v":3}'):
        task.payload = ended
        await handler.process_task(task)


@pytest.mark.parametrize("how", ["deleted", "disabled"])
async def test_a_card_not_to_be_polled_leaves_its_shard(
    plant: Plant, account: CarrierAccount, how: str
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    async with plant.pool.acquire() as conn:
        if how == "deleted":
            await delete_card(conn, card.id)
        else:
            await set_polling_enabled(conn, card.id, enabled=False)
    await CarddataHandler(plant.base).process_task(task)
    assert await plant.score(card) is None
    assert plant.gateway.calls == []


async def test_a_worker_whose_configuration_is_old_reads_it_before_it_takes_a_card_out(
    plant: Plant, account: CarrierAccount
) -> None:
    await plant.pool.execute("DELETE FROM polling_config")
    await plant.config.refresh()
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    await add_rule(plant.pool)
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.calls == [("usage", card.id)]
    assert await plant.score(card) is not None


async def test_a_worker_without_any_valid_configuration_takes_no_card_out(
    pool: Pool, postgres_dsn: str, redis: Redis, account: CarrierAccount
) -> None:
    await add_rule(pool, {"carddata": {"interval_s": 0}})
    plant = Plant(pool, postgres_dsn, redis)
    await plant.config.refresh()
    (card,) = await add_cards(pool, account, 1)
    await CarddataHandler(plant.base).process_task(await plant.task_for(card))
    due = await plant.score(card)
    assert due is not None
    assert 0 < due - await plant.queue.now_ms() <= 2 * plant.settings.put_back.total_seconds() * 1000
    assert plant.gateway.calls == []
    await plant.close()


async def test_a_card_without_a_rule_leaves_its_shard(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    await plant.pool.execute("DELETE FROM polling_config")
    await plant.config.refresh()
    await CarddataHandler(plant.base).process_task(task)
    assert await plant.score(card) is None


async def test_a_card_that_moved_waits_with_its_new_account(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    other = await add_account(plant.pool, "other")
    await plant.pool.execute("UPDATE iot_card SET account_id = $1", other.id)
    await plant.config.refresh()
    await CarddataHandler(plant.base).process_task(task)
    assert await plant.score(card) is None
    (moved,) = (await load_cards(plant.pool, [card.id])).values()
    assert await plant.score(moved) is not None


async def test_a_failing_card_backs_off(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.fail[card.id] = Transient("网关超时")
    handler = CarddataHandler(plant.base)
    waits = []
    for _ in range(3):
        await handler.process_task(await plant.task_for(card))
        waits.append((await plant.score(card) or 0) - await plant.queue.now_ms())
    for wait, (least, most) in zip(waits, [(0, 1.2), (1, 2.2), (3, 4.2)], strict=True):
        assert least * HOUR_MS - 5000 < wait <= most * HOUR_MS
    after = (await load_cards(plant.pool, [card.id]))[card.id]
    assert after.carddata.fail_count == 3
    assert after.carddata.succeeded_at is None
    assert await plant.totals() == {"failed": 3}
    row = await plant.pool.fetchrow("SELECT code, message, count, sample_card_id FROM poll_error")
    assert row is not None
    assert tuple(row) == ("transient", "网关超时", 3, card.id)


async def test_a_card_its_carrier_does_not_know_is_counted(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.fail[card.id] = CardUnknown("运营商不认识该卡")
    await CarddataHandler(plant.base).process_task(await plant.task_for(card))
    assert (await load_cards(plant.pool, [card.id]))[card.id].not_found_count == 1


async def test_a_throttled_account_rests_and_no_card_is_to_blame(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 3)
    plant.gateway.fail_all = Throttled("调用过快", timedelta(seconds=30))
    tasks = [await plant.task_for(card) for card in cards]
    handler = CarddataHandler(plant.base)
    with capture_logs() as logs:
        for task in tasks:
            await handler.process_task(task)
    assert len(plant.gateway.calls) == 1
    assert [entry["event"] for entry in logs].count("账号暂停轮询") == 1
    async with plant.pool.acquire() as conn:
        (paused,) = await list_accounts(conn)
    assert paused.pause_reason == "throttled"
    assert paused.is_paused(datetime.now(UTC))
    for card in cards:
        assert (await plant.score(card) or 0) - await plant.queue.now_ms() > 25_000
    assert await plant.totals() == {"throttled": 3}
    after = await load_cards(plant.pool, [card.id for card in cards])
    assert {card.carddata.fail_count for card in after.values()} == {0}


async def test_a_refusal_lowers_the_rate_and_stops_those_who_wait_for_their_token(
    plant: Plant, account: CarrierAccount
) -> None:
    await plant.pool.execute("UPDATE carrier_account SET qps = 10 WHERE id = $1", account.id)
    await plant.config.refresh()
    cards = await add_cards(plant.pool, account, 8)
    plant.gateway.fail_all = Throttled("调用过快", timedelta(seconds=30))
    handler = CarddataHandler(plant.base)
    tasks = [await plant.task_for(card) for card in cards]
    await asyncio.gather(*(handler.process_task(task) for task in tasks))
    assert len(plant.gateway.calls) == 1, "the others had a token for later, and were told meanwhile"
    assert await plant.totals() == {"throttled": 8}
    (now,) = plant.config.snapshot.accounts.values()
    load = (await plant.concurrency.loads.read([now]))[account.id]
    assert load.in_flight == 0
    assert load.qps == pytest.approx(7, abs=0.5)


async def test_a_full_wall_of_ones_own_lowers_no_rate(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.fail_all = Saturated("账号的并发调用已满，稍后再试")
    await CarddataHandler(plant.base).process_task(await plant.task_for(card))
    assert (await plant.concurrency.loads.read([account]))[account.id].qps == account.qps


async def test_no_slot_is_no_failure(plant: Plant, account: CarrierAccount) -> None:
    await plant.pool.execute("UPDATE carrier_account SET concurrency = 1")
    await plant.config.refresh()
    first, second = await add_cards(plant.pool, account, 2)
    tasks = [await plant.task_for(first), await plant.task_for(second)]
    plant.gateway.hold = asyncio.Event()
    handler = CarddataHandler(plant.base)
    running = asyncio.create_task(handler.process_task(tasks[0]))
    await wait_until(lambda: plant.gateway.open_calls == 1, description="the first call")
    await handler.process_task(tasks[1])
    assert plant.gateway.calls == [("usage", first.id)]
    assert (await plant.score(second) or 0) - await plant.queue.now_ms() <= 10_000
    plant.gateway.hold.set()
    await running
    assert await plant.totals() == {"done": 1, "throttled": 1}


async def test_a_card_added_again_during_its_poll_is_not_polled_twice_at_once(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.hold = asyncio.Event()
    handler = CarddataHandler(plant.base)
    running = asyncio.create_task(handler.process_task(await plant.task_for(card)))
    await wait_until(lambda: plant.gateway.open_calls == 1, description="the first call")
    await plant.queue.remove(TaskType.POLLING_CARDDATA, account.id, [(card.id, "")])
    await plant.queue.add_many(TaskType.POLLING_CARDDATA, account.id, [(card.id, 1000)])
    await handler.process_task(await plant.task_for(card))
    assert plant.gateway.calls == [("usage", card.id)]
    plant.gateway.hold.set()
    await running
    assert plant.gateway.most_in_flight == 1


async def test_without_a_gateway_the_card_comes_back_a_little_later(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    bare = Plant(plant.pool, plant.dsn, plant.redis, has_gateway=False)
    await bare.config.refresh()
    handler = CarddataHandler(bare.base)
    with capture_logs() as logs:
        for _ in range(2):
            await handler.process_task(await bare.task_for(card))
    assert [entry["event"] for entry in logs].count("网关未配置，轮询推迟") == 1
    assert 0 < (await bare.score(card) or 0) - await bare.queue.now_ms() <= 10_000
    assert await bare.totals() == {"throttled": 2}
    await bare.close()


async def test_an_account_without_an_address_is_no_failure(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    plant.gateway.fail_all = GatewayNotConfigured("账号没有网关地址")
    await CarddataHandler(plant.base).process_task(await plant.task_for(card))
    assert await plant.totals() == {"throttled": 1}


async def test_a_defect_met_by_one_card_backs_it_off_and_is_told(
    plant: Plant, account: CarrierAccount
) -> None:
    bad, good = await add_cards(plant.pool, account, 2)
    plant.gateway.fail[bad.id] = ZeroDivisionError()  # what no gateway should raise
    handler = CarddataHandler(plant.base)
    with capture_logs() as logs:
        for card in (bad, good):
            await handler.process_task(await plant.task_for(card))
    assert "轮询出错" in [entry["event"] for entry in logs]
    assert await plant.totals() == {"done": 1, "failed": 1}


async def test_while_the_database_is_away_the_gateway_is_not_asked(
    plant: Plant, account: CarrierAccount, postgres_server: EmbeddedPostgres
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    await postgres_server.stop()
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.calls == []
    assert 0 < (await plant.score(card) or 0) - await plant.queue.now_ms() <= 10_000
    await postgres_server.start()


async def test_while_redis_is_away_the_task_ends_and_the_claim_runs_out(
    plant: Plant, account: CarrierAccount, redis_server: EmbeddedRedis
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    await redis_server.stop()
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.calls == []
    await redis_server.start()
