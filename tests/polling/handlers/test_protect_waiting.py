"""What changes while a stop or resume waits: limits, cycles, accounts, cards, and replies that got lost."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.polling.handlers.firing import fire
from tests.polling.handlers.limited_cards import STOPPED, calls, over_limit
from tests.polling.plant import Plant, add_account
from tests.polling.rule_parts import RuleParts
from tests.waiting import FakeClock

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.asynq.inspector import Inspector
from junhong_cmp.asynq.states import TaskState
from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import Card, CardStatus, CarrierAccount, StopReason
from junhong_cmp.cards.observations import StatusWrite
from junhong_cmp.cards.records import record_status
from junhong_cmp.cards.store import delete_card
from junhong_cmp.gateway.errors import NotOffered, Throttled, Transient
from junhong_cmp.polling.card_payload import Order
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.operation_rules import (
    ASK_AFTER,
    GIVE_UP_AFTER,
    MOST_SENDS,
    UNSEEN_AFTER,
    OperationKind,
)
from junhong_cmp.polling.protect_sweep import SweepCause
from junhong_cmp.polling.tasks import CRON_QUEUE

SECOND = timedelta(seconds=1)


@pytest.fixture
def rules(plant: Plant, clock: FakeClock) -> RuleParts:
    return RuleParts(plant, clock)


@pytest.fixture
async def protected(plant: Plant) -> CarrierAccount:
    account = await add_account(
        plant.pool, "protected", protect_enabled=True, stop_on_expiry=True, operation_min_gap=timedelta(0)
    )
    await plant.config.refresh()
    return account


async def place_unsent(plant: Plant, rules: RuleParts, card: Card, order: Order | None = None) -> None:
    """Have an operation placed that its account's limits keep from being sent."""
    plant.gateway.fail[card.id] = Throttled("太快", SECOND)
    with pytest.raises(PutBack):
        await rules.run_protect(card, order)
    del plant.gateway.fail[card.id]
    plant.gateway.calls.clear()


async def lift(plant: Plant, clock: FakeClock, step: timedelta = timedelta(minutes=1)) -> None:
    """Let time pass until the account may be called again."""
    clock.advance(step)
    await plant.pool.execute("UPDATE carrier_account SET paused_until = NULL, paused_at = NULL")
    await plant.config.refresh()


CHANGES = {
    "threshold raised": "UPDATE iot_card SET threshold_kb = 5000",
    "threshold taken away": "UPDATE iot_card SET threshold_kb = NULL",
    "protection switched off": "UPDATE carrier_account SET protect_enabled = false",
    "stopped at the carrier": "UPDATE iot_card SET status = 'suspended', stop_reason = 'carrier'",
    "cancelled": "UPDATE iot_card SET status = 'cancelled'",
    "moved to an account without protection": """
        UPDATE iot_card SET account_id = (
            SELECT id FROM carrier_account WHERE NOT protect_enabled ORDER BY id LIMIT 1)
    """,
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_stop_nobody_wants_any_more_is_not_sent(
    plant: Plant,
    rules: RuleParts,
    account: CarrierAccount,
    protected: CarrierAccount,
    clock: FakeClock,
    change: str,
) -> None:
    assert not account.protect_enabled
    (card,) = await over_limit(plant, protected)
    await place_unsent(plant, rules, card)
    await plant.pool.execute(CHANGES[change])
    await lift(plant, clock)
    await rules.run_protect(card)
    assert calls(plant) == []
    assert await rules.operations() == [("stop", "threshold", "failed")]


async def test_a_stop_of_the_cycle_before_is_not_sent_in_the_new_one(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    clock.advance(timedelta(days=30, hours=15, minutes=50))  # ten minutes to April in Shanghai
    (card,) = await over_limit(plant, protected)
    await place_unsent(plant, rules, card)
    await lift(plant, clock, timedelta(minutes=20))
    await rules.run_protect(card)
    assert calls(plant) == []
    await plant.pool.execute("UPDATE iot_card SET cycle = '2026-04-01'")
    await rules.run_protect(card)
    assert calls(plant) == ["stop"], "what was never sent did not fail: the new cycle's stop need not wait"
    assert await rules.operations() == [("stop", "threshold", "failed"), *STOPPED]


async def test_a_stop_that_is_wanted_for_another_reason_now_says_so(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    await place_unsent(plant, rules, card)
    await record_plan(plant.pool, protected.id, "S", 900)
    await plant.pool.execute("UPDATE iot_card SET threshold_kb = NULL, plan = 'S'")
    await lift(plant, clock)
    await rules.run_protect(card)
    assert calls(plant) == ["stop"]
    assert (await rules.reload(card)).stop_reason is StopReason.OVER_PLAN


async def test_a_resume_nobody_wants_any_more_is_not_sent(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    await rules.run_protect(card)
    clock.advance(timedelta(days=31))
    await place_unsent(plant, rules, card)
    await plant.pool.execute("UPDATE iot_card SET stop_reason = 'manual'")
    await lift(plant, clock)
    await rules.run_protect(card)
    assert calls(plant) == []
    assert (await rules.operations())[1:] == [("resume", "cycle_rollover", "failed")]


async def test_an_order_by_hand_stands_whatever_the_rules_say(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected, threshold_kb=None)
    order = Order(OperationKind.STOP, "by-hand", requested_by="王工")
    await place_unsent(plant, rules, card, order)
    await lift(plant, clock)
    await rules.run_protect(card)
    assert calls(plant) == ["stop"]
    assert await rules.operations() == [("stop", "manual", "done")]


@pytest.mark.parametrize("broken", ["polling_enabled = false", "tz = 'Asia/Nowhere'"])
async def test_an_order_for_an_account_that_cannot_be_called_is_refused_for_all_to_see(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, broken: str
) -> None:
    (card,) = await over_limit(plant, protected)
    await plant.pool.execute(f"UPDATE carrier_account SET {broken}")  # noqa: S608 - from above
    await plant.config.refresh()
    order = Order(OperationKind.STOP, "by-hand")
    await rules.run_protect(card, order)
    await rules.run_protect(card, order)
    await rules.run_protect(card)
    assert calls(plant) == []
    assert await rules.operations() == [("stop", "manual", "failed")]
    assert "账号已停用" in await plant.pool.fetchval("SELECT error FROM card_operation")


@pytest.mark.parametrize("status", ["failed", "unknown"])
async def test_the_operation_of_a_deleted_card_comes_to_an_end(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, status: str
) -> None:
    (card,) = await over_limit(plant, protected)
    if status == "unknown":  # it was sent, and may have been done
        plant.gateway.fail[card.id] = Transient("断开")
        await rules.run_protect(card)
    else:
        await place_unsent(plant, rules, card)
    async with plant.pool.acquire() as conn, conn.transaction():
        await delete_card(conn, card.id)
    before = len(plant.gateway.calls)
    await rules.run_protect(card)
    await fire(rules.followup())
    assert await rules.operations() == [("stop", "threshold", status)]
    assert len(plant.gateway.calls) == before


async def lose_the_call(plant: Plant, rules: RuleParts, card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a worker die between its note that it sends and the call, at a carrier that tells only states."""

    async def die(*_: object) -> Any:
        raise asyncio.CancelledError

    async def unknown(*_: object) -> Any:
        raise NotOffered("不支持")

    monkeypatch.setattr(plant.gateway, "query_operation", unknown)
    with monkeypatch.context() as patch:
        patch.setattr(plant.gateway, "stop", die)
        with pytest.raises(asyncio.CancelledError):
            await rules.run_protect(card)


async def test_a_call_that_was_never_made_is_made_where_only_the_cards_state_can_be_asked(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    await lose_the_call(plant, rules, card, monkeypatch)
    clock.advance(ASK_AFTER + SECOND)
    await fire(rules.followup())
    assert await rules.handed_over() == [], "a carrier may take its time"
    clock.advance(UNSEEN_AFTER)
    await fire(rules.followup())
    assert await rules.handed_over() == [card.id]
    await rules.run_protect(card)
    assert calls(plant).count("stop") == 1
    assert await rules.operations() == STOPPED


async def test_a_card_that_never_shows_it_is_not_sent_to_for_ever(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    for _ in range(MOST_SENDS):
        await lose_the_call(plant, rules, card, monkeypatch)
        clock.advance(UNSEEN_AFTER + SECOND)
        await fire(rules.followup())
    assert await rules.operations() == [("stop", "threshold", "unknown")], (
        "it may have come to pass after all"
    )


async def test_a_stop_that_shows_late_is_known_to_be_ours_and_resumed_in_the_new_cycle(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    await lose_the_call(plant, rules, card, monkeypatch)
    clock.advance(UNSEEN_AFTER + SECOND)
    await fire(rules.followup())
    status = StatusWrite(
        card_id=card.id,
        account_id=protected.id,
        raw="4",
        status=CardStatus.SUSPENDED,
        observed_at=clock.now(),
    )
    async with plant.pool.acquire() as conn:
        await record_status(conn, [status])
    await rules.run_protect(card)
    assert (await rules.reload(card)).stop_reason is StopReason.THRESHOLD
    assert "stop" not in calls(plant), "it is not stopped once more"
    clock.advance(timedelta(days=31))
    await rules.run_protect(card)
    assert calls(plant)[-1] == "resume"


async def test_an_accepted_operation_is_waited_for_not_sent_again(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    await lose_the_call(plant, rules, card, monkeypatch)
    await plant.pool.execute("UPDATE card_operation SET status = 'sent'")
    clock.advance(UNSEEN_AFTER * 2)
    await fire(rules.followup())
    assert await rules.handed_over() == []
    assert await rules.operations() == [("stop", "threshold", "sent")]
    clock.advance(GIVE_UP_AFTER)
    await fire(rules.followup())
    assert await rules.operations() == [("stop", "threshold", "unknown")]


async def test_many_that_wait_keep_no_other_from_its_turn(
    plant: Plant,
    rules: RuleParts,
    account: CarrierAccount,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("junhong_cmp.polling.handlers.operation_followup._MOST_AT_ONCE", 3)
    insert = """
        INSERT INTO card_operation
            (card_id, kind, reason, request_id, status, requested_at, updated_at, sent_at)
        VALUES ($1, 'stop', 'manual', $2, 'pending', $3, $3, $4)
    """
    cards = await over_limit(plant, protected, 8)
    now = clock.now()
    for number, card in enumerate(cards[:-1]):  # these were never sent, and are older than all others
        await plant.pool.execute(insert, card.id, f"unsent-{number}", now - timedelta(hours=2), None)
    late = now - timedelta(hours=1)
    await plant.pool.execute(insert, cards[-1].id, "sent", late, late)
    await plant.pool.execute("UPDATE iot_card SET account_id = $1 WHERE id = $2", account.id, cards[0].id)
    await fire(rules.followup())
    asked = [card_id for operation, card_id in plant.gateway.calls if operation == "operation"]
    assert asked == [cards[-1].id]
    assert cards[0].id in await rules.handed_over(), "nor those of another account"


async def test_a_task_that_ended_badly_stands_in_the_way_of_no_later_one(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = CardTasks(Client(plant.redis))
    instant = 1_800_000_000.0
    monkeypatch.setattr("junhong_cmp.polling.card_tasks.time.time", lambda: instant)
    await tasks.send(1, 1, 0)
    await tasks.send(1, 1, 0)
    inspector = Inspector(plant.redis)
    (task,) = await inspector.list_tasks(CRON_QUEUE, TaskState.PENDING)
    await inspector.archive_task(CRON_QUEUE, task.id)
    instant += 3601
    await tasks.send(1, 1, 0)
    assert len(await inspector.list_tasks(CRON_QUEUE, TaskState.PENDING)) == 1


async def test_what_was_never_sent_does_not_rest_as_if_it_had_failed(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    await place_unsent(plant, rules, card)
    await lift(plant, clock, GIVE_UP_AFTER)
    await rules.run_protect(card)
    assert await rules.operations() == [("stop", "threshold", "failed")]
    await rules.sweep.sweep(SweepCause.USAGE, draining=asyncio.Event())
    assert await rules.handed_over() == [card.id]
    await rules.run_protect(card)
    assert (await rules.operations())[1:] == STOPPED
