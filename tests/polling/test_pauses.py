"""Pauses of accounts and of their task types, honoured by the leader and by every consumer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.polling.plant import Plant, add_account, add_cards
from tests.waiting import FakeClock, wait_until

from junhong_cmp.asynq.keys import queue_keys
from junhong_cmp.cards.account_store import pause_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.errors import (
    AccountPausing,
    AuthRejected,
    BadResponse,
    BreakerOpen,
    CardUnknown,
    QuotaExhausted,
    Throttled,
    Transient,
)
from junhong_cmp.polling.handlers.carddata import CarddataHandler
from junhong_cmp.polling.handlers.cardstatus import CardstatusHandler
from junhong_cmp.polling.pause_store import pause_polling, resume_polling
from junhong_cmp.polling.pauses import AccountPauses
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


async def read_nothing() -> bool:
    return False


def lasting(pool: Pool, clock: FakeClock, max_pause: timedelta = timedelta(hours=1)) -> AccountPauses:
    return AccountPauses(pool, reread=read_nothing, clock=clock, max_pause=max_pause)


async def seconds_of(
    pauses: AccountPauses, clock: FakeClock, account: CarrierAccount, errors: Sequence[AccountPausing]
) -> list[float]:
    """Return how long each of these refusals lets the account rest; each comes when the last pause ends."""
    lengths = []
    for error in errors:
        length = await pauses.pause(account, error)
        assert pauses.remaining(account) == length
        clock.advance(length)
        lengths.append(length.total_seconds())
    return lengths


async def test_pauses_of_an_account_that_only_refuses_grow_to_a_minute(
    pool: Pool, account: CarrierAccount
) -> None:
    clock = FakeClock()
    pauses = lasting(pool, clock)
    other = await add_account(pool, "other")
    refusals = [Throttled("太快")] * 8
    assert await seconds_of(pauses, clock, account, refusals) == [1, 2, 4, 8, 16, 32, 60, 60]
    assert await seconds_of(pauses, clock, other, refusals[:1]) == [1]
    pauses.answered(other.id)
    assert await seconds_of(pauses, clock, account, refusals[:1]) == [60]
    pauses.answered(account.id)
    assert await seconds_of(pauses, clock, account, refusals[:2]) == [1, 2]
    until = await pool.fetchval("SELECT paused_until FROM carrier_account WHERE id = $1", account.id)
    assert until == clock.now(), "others are told of the grown pause"


async def test_a_refusal_during_a_pause_lets_none_grow(pool: Pool, account: CarrierAccount) -> None:
    clock = FakeClock()
    pauses = lasting(pool, clock)
    first = await pauses.pause(account, Throttled("太快"))
    clock.advance(first / 2)
    for _ in range(10):
        assert await pauses.pause(account, Throttled("太快")) == first / 2
    told = replace(account, paused_until=clock.now() + timedelta(seconds=30))
    assert await pauses.pause(told, Throttled("太快")) == timedelta(seconds=30)
    clock.advance(first / 2)
    assert await seconds_of(pauses, clock, account, [Throttled("太快")]) == [2]


async def test_a_pause_is_never_shorter_than_asked_for_nor_grown_beyond_what_it_may_be(
    pool: Pool, account: CarrierAccount
) -> None:
    clock = FakeClock()
    pauses = lasting(pool, clock)
    lengths = [timedelta(seconds=seconds) for seconds in (40, 5, 90, 5)]
    refusals: list[AccountPausing] = [Throttled("太快", length) for length in lengths]
    refusals += [AuthRejected("凭证无效"), AuthRejected("凭证无效"), QuotaExhausted("用尽")]
    expected = [40, 60, 90, 60, 600, 600, 3600]
    assert await seconds_of(pauses, clock, account, refusals) == expected
    short = lasting(pool, clock, max_pause=timedelta(seconds=3))
    assert await seconds_of(short, clock, account, [Throttled("太快")] * 4) == [1, 2, 3, 3]


async def test_what_no_carrier_refused_does_not_grow(pool: Pool, account: CarrierAccount) -> None:
    clock = FakeClock()
    pauses = lasting(pool, clock)
    assert await seconds_of(pauses, clock, account, [BreakerOpen("熔断")] * 4) == [5, 5, 5, 5]
    for _ in range(3):
        rest = await pauses.pause(
            account, QuotaExhausted("用尽", timedelta(hours=2)), longest=timedelta(days=1)
        )
        assert rest == timedelta(hours=2)
        clock.advance(rest)
    assert await seconds_of(pauses, clock, account, [Throttled("太快")]) == [1]


async def test_refusals_of_calls_begun_before_the_pause_neither_lengthen_it_nor_write_it_anew(
    plant: Plant, account: CarrierAccount, clock: FakeClock
) -> None:
    await plant.config.refresh()
    pauses = AccountPauses(
        plant.pool,
        reread=plant.config.try_refresh,
        accounts=lambda: plant.config.snapshot.accounts,
        clock=clock,
    )
    with capture_logs() as logs:
        for _ in range(5):  # each was told of the account when nobody had refused yet
            assert await pauses.pause(account, Throttled("太快")) == timedelta(seconds=1)
    assert [entry["event"] for entry in logs].count("账号暂停轮询") == 1


async def test_an_old_refusal_is_forgotten(pool: Pool, account: CarrierAccount) -> None:
    clock = FakeClock()
    pauses = lasting(pool, clock)
    assert await seconds_of(pauses, clock, account, [Throttled("太快")] * 3) == [1, 2, 4]
    clock.advance(timedelta(minutes=1))
    assert await seconds_of(pauses, clock, account, [Throttled("太快")]) == [8]
    clock.advance(timedelta(minutes=2))
    assert await seconds_of(pauses, clock, account, [Throttled("太快")]) == [1]


@pytest.mark.parametrize(
    ("met", "next_pause_s"),
    [(None, 1), (CardUnknown("不认识"), 1), (BadResponse("无法解读"), 1), (Transient("超时"), 2)],
)
@pytest.mark.parametrize("in_batch", [False, True])
async def test_an_answer_of_the_carrier_ends_the_growth_of_its_pauses(
    plant: Plant, met: Exception | None, next_pause_s: int, *, in_batch: bool
) -> None:
    account = await add_account(plant.pool, "slow", batch_size=10)
    await plant.config.refresh()
    cards = await add_cards(plant.pool, account, 2)
    handler = CarddataHandler(plant.base)

    async def poll() -> None:
        for task in [await plant.batch_task_for(cards)] if in_batch else [await plant.task_for(cards[0])]:
            await handler.process_task(task)
        assert await resume(plant.pool, account) is (plant.gateway.fail_all is not None)
        await plant.config.refresh()

    with capture_logs() as logs:
        plant.gateway.fail_all = Throttled("太快")
        await poll()
        plant.gateway.fail_all = None
        plant.gateway.fail = {} if met is None else {card.id: met for card in cards}
        await poll()
        plant.gateway.fail_all = Throttled("太快")
        await poll()
    lengths = [entry["pause_s"] for entry in logs if entry["event"] == "账号暂停轮询"]
    assert lengths == [1, next_pause_s]
