"""Pauses of accounts and of their task types, honoured by the leader and by every consumer."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_account, add_cards
from tests.waiting import wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.errors import Throttled
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.pause_store import pause_polling, resume_polling
from junhong_cmp.polling.tasks import POLLING_QUEUE, POLLING_TASK_TYPES, TaskType

CARDDATA, CARDSTATUS = TaskType.POLLING_CARDDATA, TaskType.POLLING_CARDSTATUS


async def pause(pool: Pool, account: CarrierAccount, kind: TaskType | None, **length: float) -> datetime:
    until = datetime.now(UTC) + timedelta(**length) if length else None
    async with pool.acquire() as conn:
        return await pause_polling(conn, account.id, kind, until, "维护")


async def resume(pool: Pool, account: CarrierAccount, kind: TaskType | None = None) -> bool:
    async with pool.acquire() as conn:
        return await resume_polling(conn, account.id, kind)


async def test_the_leader_leaves_a_paused_type_alone_and_polls_the_others(
    plant: Plant, account: CarrierAccount
) -> None:
    await pause(plant.pool, account, CARDDATA)
    await plant.config.refresh()
    cards = await add_cards(plant.pool, account, 10)
    for kind in (CARDDATA, CARDSTATUS):
        await plant.queue.add_many(kind, account.id, [(card.id, 1000) for card in cards])
    scheduler = plant.scheduler()
    await scheduler.start()
    pending = queue_keys(POLLING_QUEUE).pending

    async def there(count: int) -> bool:
        return bool(await plant.redis.llen(pending) == count)

    await wait_until(lambda: there(10), description="the other type's polls")
    ids = await plant.redis.lrange(pending, 0, -1)
    assert {task_id.decode().rpartition(":")[0].rpartition(":")[0] for task_id in ids} == {CARDSTATUS}
    await resume(plant.pool, account, CARDDATA)
    await plant.config.refresh()
    await wait_until(lambda: there(20), description="the resumed type's polls")
    await scheduler.stop()


@pytest.mark.parametrize("kind", [None, CARDDATA])
async def test_a_consumer_puts_a_claimed_card_of_the_paused_back(
    plant: Plant, account: CarrierAccount, kind: TaskType | None
) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    task = await plant.task_for(card)
    await pause(plant.pool, account, kind, minutes=10)
    await plant.config.refresh()
    await CarddataHandler(plant.base).process_task(task)
    assert plant.gateway.calls == []
    assert (await plant.score(card) or 0) >= await plant.queue.now_ms() + 590_000
    await CardstatusHandler(plant.base).process_task(await plant.task_for(card, CARDSTATUS))
    assert bool(plant.gateway.calls) is (kind is CARDDATA)


async def test_a_resumed_account_is_polled_by_who_paused_it(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    handler = CarddataHandler(plant.base)
    plant.gateway.fail_all = Throttled("太快", timedelta(minutes=30))
    await handler.process_task(await plant.task_for(card))
    plant.gateway.fail_all = None
    await handler.process_task(await plant.task_for(card))
    assert len(plant.gateway.calls) == 1
    assert await resume(plant.pool, account)
    await plant.config.refresh()
    await handler.process_task(await plant.task_for(card))
    assert len(plant.gateway.calls) == 2


async def test_a_pause_never_shortens_one_in_force_and_ends_once(pool: Pool, account: CarrierAccount) -> None:
    endless = await pause(pool, account, None)
    assert endless.year == 9999
    assert await pause(pool, account, None, hours=1) == endless
    assert await pause(pool, account, CARDDATA, hours=2) < endless
    assert await resume(pool, account)
    assert not await resume(pool, account)
    assert await resume(pool, account, CARDDATA)
    assert not await resume(pool, account, CARDDATA)


async def test_a_carriers_pause_does_not_take_an_operators_over(pool: Pool, account: CarrierAccount) -> None:
    await pause(pool, account, None, minutes=1)
    async with pool.acquire() as conn:
        later = datetime.now(UTC) + timedelta(hours=1)
        assert await pause_account(conn, account.id, later, "quota_exhausted")
    row = await pool.fetchrow("SELECT pause_reason, paused_until FROM carrier_account")
    assert row is not None
    assert (row["pause_reason"], row["paused_until"]) == ("manual: 维护", later)


async def test_an_account_in_an_unknown_time_zone_is_not_called_and_told_once(
    plant: Plant, account: CarrierAccount
) -> None:
    lost = await add_account(plant.pool, "lost", tz="Mars/Olympus")
    (card,) = await add_cards(plant.pool, lost, 1)
    with capture_logs() as logs:
        await plant.config.refresh()
        await plant.config.refresh()
        await pause(plant.pool, account, CARDDATA)
        await plant.config.refresh()
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [(entry["event"], entry["account"]) for entry in errors] == [("账号无法使用，不再轮询", "lost")]
    assert "Mars/Olympus" in errors[0]["reason"]
    snapshot, now = plant.config.snapshot, datetime.now(UTC)
    assert snapshot.callable_types(lost.id, now) == ()
    assert snapshot.callable_types(account.id, now) == POLLING_TASK_TYPES[1:]
    await CarddataHandler(plant.base).process_task(await plant.task_for(card))
    assert plant.gateway.calls == []
    await plant.pool.execute("UPDATE carrier_account SET tz = 'Asia/Shanghai' WHERE id = $1", lost.id)
    await plant.config.refresh()
    assert plant.config.snapshot.callable_types(lost.id, now) == POLLING_TASK_TYPES
