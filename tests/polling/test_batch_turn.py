import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.fakes.gateway import FakeGateway
from tests.polling.plant import Plant, add_account, add_cards
from tests.waiting import wait_until

from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.store import delete_card, load_cards, set_polling_enabled
from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.redis_server import EmbeddedRedis
from junhong_cmp.gateway.client import CardRef, GatewayAccount, StatusAnswer, UsageAnswer
from junhong_cmp.gateway.errors import (
    BadRequest,
    CardUnknown,
    GatewayError,
    NotOffered,
    Throttled,
    Transient,
)
from junhong_cmp.polling import keys
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.handlers.realname import RealnameHandler
from junhong_cmp.polling.tasks import TaskType

HOUR_MS = 3_600_000


@pytest.fixture
async def account(pool: Pool) -> CarrierAccount:
    """Batches of up to a hundred cards."""
    return await add_account(pool, batch_size=100)


class BatchRefusingGateway(FakeGateway):
    """A gateway that refuses batches as such, or forgets cards in its answers."""

    def __init__(self, refusal: GatewayError | None = None, forgets: Sequence[int] = ()) -> None:
        super().__init__()
        self.refusal = refusal
        self.forgets = forgets

    async def query_usage_batch(
        self, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        if self.refusal is not None:
            raise self.refusal
        answers = await super().query_usage_batch(account, cards)
        return {card_id: answer for card_id, answer in answers.items() if card_id not in self.forgets}

    async def query_status(self, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        raise NotOffered("没有这个接口")


async def wait_ms(plant: Plant, card: Card) -> int:
    return (await plant.score(card) or 0) - await plant.queue.now_ms()


async def test_a_batch_is_one_call_and_every_card_is_committed_and_due_again(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 20)
    for card in cards:
        plant.gateway.used_kb[card.id] = card.id * 10
    await CarddataHandler(plant.base).process_task(await plant.batch_task_for(cards))
    assert plant.gateway.batches == [("usage", 20)]
    after = await load_cards(plant.pool, [card.id for card in cards])
    assert {card.last_reading_kb == card.id * 10 for card in after.values()} == {True}
    for card in cards:
        assert 0 < await wait_ms(plant, card) <= 1.2 * HOUR_MS
    assert await plant.totals() == {"done": 20}
    assert await plant.redis.exists(keys.account_slots(account.id), keys.account_riders(account.id)) == 0
    assert sum(await plant.pool.fetchval("SELECT lag_histogram FROM poll_minute")) == 20


@pytest.mark.parametrize(
    ("handler", "kind", "asked"),
    [
        (CardstatusHandler, TaskType.POLLING_CARDSTATUS, "status"),
        (RealnameHandler, TaskType.POLLING_REALNAME, "realname"),
    ],
)
async def test_every_question_has_a_batch(
    plant: Plant,
    account: CarrierAccount,
    handler: type[CardstatusHandler] | type[RealnameHandler],
    kind: TaskType,
    asked: str,
) -> None:
    cards = await add_cards(plant.pool, account, 3, real_name_required=True)
    await handler(plant.base).process_task(await plant.batch_task_for(cards, kind))
    assert plant.gateway.batches == [(asked, 3)]
    assert await plant.totals() == {"done": 3}
    for card in cards:
        assert (await plant.score(card, kind) or 0) > await plant.queue.now_ms()


async def test_a_batch_delivered_twice_asks_once(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 5)
    task = await plant.batch_task_for(cards)
    handler = CarddataHandler(plant.base)
    await asyncio.gather(handler.process_task(task), handler.process_task(task))
    await handler.process_task(task)
    assert sorted(plant.gateway.calls) == [("usage", card.id) for card in cards]
    assert await plant.totals() == {"done": 5, "superseded": 10}


async def test_cards_fall_out_one_by_one(plant: Plant, account: CarrierAccount) -> None:
    deleted, disabled, moved, superseded, taken, *good = await add_cards(plant.pool, account, 8)
    task = await plant.batch_task_for([deleted, disabled, moved, superseded, taken, *good])
    other = await add_account(plant.pool, "other")
    async with plant.pool.acquire() as conn:
        await delete_card(conn, deleted.id)
        await set_polling_enabled(conn, disabled.id, enabled=False)
        await conn.execute("UPDATE iot_card SET account_id = $2 WHERE id = $1", moved.id, other.id)
    await plant.config.refresh()
    await plant.claim_card(superseded)
    await plant.concurrency.acquire(account, TaskType.POLLING_CARDDATA, taken.id)
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.batches == [("usage", len(good))]
    assert await plant.score(deleted) is None
    assert await plant.score(disabled) is None
    assert await plant.score(moved) is None
    (now_other,) = (await load_cards(plant.pool, [moved.id])).values()
    assert await plant.score(now_other) is not None
    assert await wait_ms(plant, taken) <= 10_000
    assert await plant.totals() == {"done": len(good), "superseded": 1, "throttled": 1}


async def test_a_bad_card_fails_alone(plant: Plant, account: CarrierAccount) -> None:
    unknown, broken, *good = await add_cards(plant.pool, account, 6)
    plant.gateway.fail = {unknown.id: CardUnknown("运营商不认识该卡"), broken.id: Transient("系统繁忙")}
    await CarddataHandler(plant.base).process_task(await plant.batch_task_for([unknown, *good, broken]))
    after = await load_cards(plant.pool, [unknown.id, broken.id, good[0].id])
    assert [after[card.id].carddata.fail_count for card in (unknown, broken, good[0])] == [1, 1, 0]
    assert after[unknown.id].not_found_count == 1
    assert await plant.totals() == {"done": 4, "failed": 2}


async def test_a_card_missing_from_the_answer_failed(plant: Plant, account: CarrierAccount) -> None:
    forgotten, good = await add_cards(plant.pool, account, 2)
    forgetful = Plant(
        plant.pool, plant.dsn, plant.redis, gateway=BatchRefusingGateway(forgets=[forgotten.id])
    )
    await forgetful.config.refresh()
    await CarddataHandler(forgetful.base).process_task(await forgetful.batch_task_for([forgotten, good]))
    assert await forgetful.totals() == {"done": 1, "failed": 1}
    await forgetful.close()


async def test_a_throttled_account_puts_the_whole_batch_back(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 10)
    plant.gateway.fail_all = Throttled("调用过快", timedelta(seconds=30))
    with capture_logs() as logs:
        await CarddataHandler(plant.base).process_task(await plant.batch_task_for(cards))
    assert [entry["event"] for entry in logs].count("账号暂停轮询") == 1
    async with plant.pool.acquire() as conn:
        (paused,) = await list_accounts(conn)
    assert paused.is_paused(datetime.now(UTC))
    assert [await wait_ms(plant, card) > 25_000 for card in cards] == [True] * 10
    after = await load_cards(plant.pool, [card.id for card in cards])
    assert {card.carddata.fail_count for card in after.values()} == {0}
    assert await plant.totals() == {"throttled": 10}


@pytest.mark.parametrize("refusal", [BadRequest("参数错误"), NotOffered("没有这个接口")])
async def test_a_batch_refused_as_such_is_asked_about_card_by_card(
    plant: Plant, account: CarrierAccount, refusal: GatewayError
) -> None:
    cards = await add_cards(plant.pool, account, 4)
    refusing = Plant(plant.pool, plant.dsn, plant.redis, gateway=BatchRefusingGateway(refusal))
    await refusing.config.refresh()
    refusing.gateway.fail[cards[0].id] = Transient("系统繁忙")
    with capture_logs() as logs:
        await CarddataHandler(refusing.base).process_task(await refusing.batch_task_for(cards))
    assert sorted(refusing.gateway.calls) == [("usage", card.id) for card in cards]
    assert [entry["event"] for entry in logs].count("批量查询被拒绝，改为逐卡查询") == 1
    assert await refusing.totals() == {"done": 3, "failed": 1}
    assert await refusing.redis.zcard(keys.account_slots(account.id)) == 0
    await refusing.close()


async def test_many_refused_batches_at_once_are_all_asked_about_card_by_card(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 60)
    refusing = Plant(plant.pool, plant.dsn, plant.redis, gateway=BatchRefusingGateway(BadRequest("参数错误")))
    await refusing.config.refresh()
    handler = CarddataHandler(refusing.base)
    tasks = [await refusing.batch_task_for(cards[start : start + 10]) for start in range(0, 60, 10)]
    await asyncio.gather(*(handler.process_task(task) for task in tasks))
    assert await refusing.totals() == {"done": 60}
    await refusing.close()


async def test_a_question_the_carrier_does_not_know_is_no_failure(
    plant: Plant, account: CarrierAccount
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    bare = Plant(plant.pool, plant.dsn, plant.redis, gateway=BatchRefusingGateway())
    await bare.config.refresh()
    with capture_logs() as logs:
        await CardstatusHandler(bare.base).process_task(
            await bare.task_for(card, TaskType.POLLING_CARDSTATUS)
        )
    assert "运营商接口不提供此查询，请停用其轮询" in [entry["event"] for entry in logs]
    due = await bare.score(card, TaskType.POLLING_CARDSTATUS)
    assert (due or 0) - await bare.queue.now_ms() > 10_000
    assert await bare.totals() == {"throttled": 1}
    await bare.close()


async def test_a_batch_too_large_for_this_account_is_cut(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 7)
    task = await plant.batch_task_for(cards)
    await plant.pool.execute("UPDATE carrier_account SET batch_size = 3")
    await plant.config.refresh()
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.batches == [("usage", 3), ("usage", 3), ("usage", 1)]
    assert await plant.totals() == {"done": 7}


async def test_a_batch_for_an_account_that_has_single_calls_only(
    plant: Plant, account: CarrierAccount
) -> None:
    cards = await add_cards(plant.pool, account, 3)
    task = await plant.batch_task_for(cards)
    await plant.pool.execute("UPDATE carrier_account SET batch_size = 1")
    await plant.config.refresh()
    await CarddataHandler(plant.base).process_task(task)
    assert (plant.gateway.batches, len(plant.gateway.calls)) == ([], 3)
    assert await plant.totals() == {"done": 3}


async def test_a_used_up_budget_pauses_the_account_to_its_end_and_blames_no_card(
    plant: Plant, account: CarrierAccount
) -> None:
    await plant.pool.execute("UPDATE carrier_account SET daily_quota = 1, tz = 'Asia/Shanghai'")
    await plant.config.refresh()
    first, second = await add_cards(plant.pool, account, 5), await add_cards(plant.pool, account, 5, first=5)
    handler = CarddataHandler(plant.base)
    await handler.process_task(await plant.batch_task_for(first))
    await handler.process_task(await plant.batch_task_for(second))
    assert plant.gateway.batches == [("usage", 5)]
    async with plant.pool.acquire() as conn:
        (paused,) = await list_accounts(conn)
    assert paused.pause_reason == "quota_exhausted"
    assert paused.paused_until is not None
    midnight = paused.paused_until + timedelta(hours=8)
    assert (
        abs(midnight - midnight.replace(hour=0, minute=0, second=0, microsecond=0)) < timedelta(seconds=5)
        or midnight.hour == 23
    )
    after = await load_cards(plant.pool, [card.id for card in second])
    assert {card.carddata.fail_count for card in after.values()} == {0}
    assert await plant.totals() == {"done": 5, "throttled": 5}


async def test_the_cards_of_a_crashed_consumer_come_back(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 3)
    plant.gateway.hold = asyncio.Event()
    running = asyncio.create_task(CarddataHandler(plant.base).process_task(await plant.batch_task_for(cards)))
    await wait_until(lambda: plant.gateway.open_calls == 3, description="the call")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for card in cards:
        assert 0 < await wait_ms(plant, card) <= plant.settings.turn_timeout.total_seconds() * 1000
    assert await plant.redis.zcard(keys.account_slots(account.id)) == 0


async def test_while_redis_is_away_the_task_ends_and_the_claims_run_out(
    plant: Plant, account: CarrierAccount, redis_server: EmbeddedRedis
) -> None:
    cards = await add_cards(plant.pool, account, 3)
    task = await plant.batch_task_for(cards)
    await redis_server.stop()
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.batches == []
    await redis_server.start()
