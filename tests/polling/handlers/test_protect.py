"""Cards are stopped and resumed by the rules: on current readings, once, and followed to the end."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.polling.handlers.firing import fire
from tests.polling.handlers.limited_cards import STOPPED, calls, over_limit
from tests.polling.plant import Plant, add_account
from tests.polling.rule_parts import RuleParts, card_task
from tests.waiting import FakeClock, wait_until

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.limit_store import record_plan
from junhong_cmp.cards.model import Card, CardStatus, CarrierAccount, StopReason
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    BadRequest,
    CardResting,
    CardUnknown,
    GatewayError,
    NotOffered,
    Throttled,
    Transient,
)
from junhong_cmp.polling.card_payload import Order
from junhong_cmp.polling.handlers.cycle_rollover import CycleRolloverHandler
from junhong_cmp.polling.operation_rules import ASK_AFTER, MOST_SENDS, OperationKind
from junhong_cmp.polling.protect_sweep import SweepCause
from junhong_cmp.polling.tasks import TaskType


@pytest.fixture
def rules(plant: Plant, clock: FakeClock) -> RuleParts:
    return RuleParts(plant, clock)


@pytest.fixture
async def protected(plant: Plant) -> CarrierAccount:
    """An account whose cards are stopped by the rules."""
    account = await add_account(plant.pool, "protected", protect_enabled=True, stop_on_expiry=True)
    await plant.config.refresh()
    return account


async def test_a_card_over_its_limit_is_stopped_once(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await over_limit(plant, protected)
    with capture_logs() as logs:
        await rules.run_protect(card)
    await rules.run_protect(card)
    after = await rules.reload(card)
    assert (after.status, after.stop_reason) == (CardStatus.SUSPENDED, StopReason.THRESHOLD)
    assert await rules.operations() == STOPPED
    assert calls(plant) == ["stop"]
    assert [entry["event"] for entry in logs] == ["停复机操作完成"]


async def test_without_a_current_reading_the_card_is_polled_first(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await over_limit(plant, protected, cycle="2026-02-01")
    await rules.run_protect(card)
    assert (calls(plant), await rules.operations()) == ([], [])
    due = await plant.score(card)
    assert due is not None
    assert due <= await plant.queue.now_ms()


async def test_accounts_that_do_not_ask_for_it_are_left_alone(
    plant: Plant, rules: RuleParts, account: CarrierAccount
) -> None:
    (card,) = await over_limit(plant, account)
    await rules.run_protect(card)
    await rules.sweep.sweep(SweepCause.USAGE, draining=_never())
    assert (calls(plant), await rules.handed_over()) == ([], [])


async def test_the_operation_is_written_down_before_the_call(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await over_limit(plant, protected)
    seen: list[str] = []

    class Looking:
        async def stop(self, *_: object) -> None:
            rows = await plant.pool.fetch("SELECT status, sends, sent_at FROM card_operation")
            seen.extend(f"{row['status']} {row['sends']} {row['sent_at'] is not None}" for row in rows)
            raise BadRequest("参数错误")

    await rules.run_protect(card, gateway=Looking())
    assert seen == ["pending 1 True"]


async def test_a_card_found_stopped_was_stopped_by_somebody_else(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    plant.gateway.fail[card.id] = AlreadyDone("已停机")
    await rules.run_protect(card)
    after = await rules.reload(card)
    assert (after.status, after.stop_reason) == (CardStatus.SUSPENDED, StopReason.CARRIER)
    assert await rules.operations() == STOPPED
    clock.advance(timedelta(days=40))
    await rules.run_protect(card)
    assert calls(plant) == ["stop"], "a new cycle resumes only what our rules stopped"


async def test_a_lost_reply_is_asked_about_and_never_sent_again(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    stop = plant.gateway.stop

    async def lose_the_reply(*arguments: Any) -> Any:
        await stop(*arguments)
        raise Transient("连接断开")

    monkeypatch.setattr(plant.gateway, "stop", lose_the_reply)
    await rules.run_protect(card)
    await rules.run_protect(card)
    assert await rules.operations() == [("stop", "threshold", "pending")]
    clock.advance(ASK_AFTER + timedelta(seconds=1))
    await fire(rules.followup())
    assert await rules.operations() == STOPPED
    assert calls(plant) == ["stop", "operation"]
    assert (await rules.reload(card)).stop_reason is StopReason.THRESHOLD


async def test_what_the_carrier_never_saw_is_sent_again_under_the_same_request_id(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    plant.gateway.fail[card.id] = Transient("连接断开")
    await rules.run_protect(card)
    del plant.gateway.fail[card.id]
    request_id = await plant.pool.fetchval("SELECT request_id FROM card_operation")
    clock.advance(ASK_AFTER + timedelta(seconds=1))
    await fire(rules.followup())
    assert await rules.handed_over() == [card.id]
    await rules.run_protect(card)
    row = await plant.pool.fetchrow("SELECT request_id, status, sends FROM card_operation")
    assert row is not None
    assert tuple(row) == (request_id, "done", 2)
    assert calls(plant) == ["stop", "operation", "stop"]


async def test_an_operation_the_carrier_never_sees_ends(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    monkeypatch.setattr(plant.gateway, "stop", _raising(Transient("连接断开")))
    for _ in range(MOST_SENDS):
        await rules.run_protect(card)
        clock.advance(ASK_AFTER + timedelta(seconds=1))
        await fire(rules.followup())
    assert await rules.operations() == [("stop", "threshold", "failed")]
    await rules.run_protect(card)
    assert len(await rules.operations()) == 1, "what failed rests"
    clock.advance(timedelta(hours=7))
    await rules.run_protect(card)
    assert len(await rules.operations()) == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [(BadRequest("参数错误"), "failed"), (CardUnknown("未知卡"), "failed"), (NotOffered("不支持"), "failed")],
)
async def test_a_refusal_is_kept_for_people_to_see(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, error: GatewayError, status: str
) -> None:
    (card,) = await over_limit(plant, protected)
    plant.gateway.fail[card.id] = error
    await rules.run_protect(card)
    assert await rules.operations() == [("stop", "threshold", status)]
    await plant.stats.flush()
    rows = await plant.pool.fetch("SELECT task_type, code FROM poll_error")
    assert [tuple(row) for row in rows] == [("polling:protect", error.reason)]


@pytest.mark.parametrize(
    "error", [Throttled("太快", timedelta(minutes=5)), Transient("拒绝", maybe_executed=False)]
)
async def test_a_call_that_was_not_made_leaves_no_trace_but_a_wait(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, error: GatewayError
) -> None:
    (card,) = await over_limit(plant, protected)
    plant.gateway.fail[card.id] = error
    with pytest.raises(PutBack):
        await rules.run_protect(card)
    row = await plant.pool.fetchrow("SELECT status, sends, sent_at FROM card_operation")
    assert row is not None
    assert tuple(row) == ("pending", 0, None)
    if isinstance(error, Throttled):
        with pytest.raises(PutBack, match="账号暂停"):
            await rules.run_protect(card)
        assert calls(plant) == ["stop"], "the account rests"


async def test_operations_of_a_card_keep_their_distance(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    await rules.run_protect(card)
    order = Order(OperationKind.RESUME, "by-hand")
    with pytest.raises(PutBack, match="间隔不足") as refusal:
        await rules.run_protect(card, order)
    assert refusal.value.delay == protected.operation_min_gap
    clock.advance(protected.operation_min_gap)
    await rules.run_protect(card, order)
    await rules.run_protect(card, order)
    assert await rules.operations() == [*STOPPED, ("resume", "manual", "done")]
    assert calls(plant) == ["stop", "resume"]
    clock.advance(timedelta(hours=1))
    await rules.run_protect(card)
    assert calls(plant) == ["stop", "resume"], "whoever resumes a card by hand keeps it running"


async def test_a_new_cycle_resumes_what_was_stopped_for_usage_and_nothing_else(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    usage, manual = await over_limit(plant, protected, 2)
    await rules.run_protect(manual, Order(OperationKind.STOP, "by-hand"))
    await rules.run_protect(usage)
    rollover = CycleRolloverHandler(plant.pool, rules.sweep, clock=clock)
    await fire(rollover)
    assert await rules.handed_over() == []
    clock.advance(timedelta(days=31))
    await fire(rollover)
    assert await rules.handed_over() == [usage.id]
    for card in (usage, manual):
        await rules.run_protect(card)
        await rules.run_protect(card)
    assert (await rules.operations())[2:] == [("resume", "cycle_rollover", "done")]
    assert (await rules.reload(usage)).status is CardStatus.ACTIVE
    assert (await rules.reload(manual)).stop_reason is StopReason.MANUAL
    await fire(rollover)
    assert await rules.handed_over() == []


async def test_a_stop_by_hand_outweighs_an_earlier_one_for_usage(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    await rules.run_protect(card)
    clock.advance(protected.operation_min_gap)
    await rules.run_protect(card, Order(OperationKind.STOP, "by-hand"))
    assert (await rules.reload(card)).stop_reason is StopReason.MANUAL
    clock.advance(timedelta(days=31))
    await rules.run_protect(card)
    assert "resume" not in calls(plant)


async def test_sweeps_find_what_no_reading_has_told(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    over, below, planned, expired, old = await over_limit(plant, protected, 5)
    await plant.pool.execute("UPDATE iot_card SET cycle_used_kb = 999 WHERE id <> $1", over.id)
    await record_plan(plant.pool, protected.id, "S", 900)
    await plant.pool.execute("UPDATE iot_card SET plan = 'S' WHERE id = $1", planned.id)
    await plant.pool.execute("UPDATE iot_card SET expires_at = $2 WHERE id = $1", expired.id, clock.now())
    await plant.pool.execute(
        "UPDATE iot_card SET cycle_used_kb = 5000, cycle = '2026-02-01' WHERE id = $1", old.id
    )
    await rules.sweep.sweep(SweepCause.USAGE, draining=_never())
    assert await rules.handed_over() == [over.id, planned.id]
    await rules.sweep.sweep(SweepCause.EXPIRY, draining=_never())
    assert await rules.handed_over() == [expired.id]
    for card in (over, below, planned, expired, old):
        await rules.run_protect(card)
    assert {row[1] for row in await rules.operations()} == {"threshold", "over_plan", "expired"}
    for cause in SweepCause:
        await rules.sweep.sweep(cause, draining=_never())
    assert await rules.handed_over() == []


async def test_a_placed_operation_whose_task_was_lost_is_handed_over_again(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    (card,) = await over_limit(plant, protected)
    plant.gateway.fail[card.id] = Throttled("太快", timedelta(seconds=1))
    with pytest.raises(PutBack):
        await rules.run_protect(card)
    del plant.gateway.fail[card.id]
    clock.advance(ASK_AFTER + timedelta(seconds=1))
    await fire(rules.followup())
    assert await rules.handed_over() == [card.id]
    await rules.run_protect(card)
    assert await rules.operations() == STOPPED


async def test_where_operations_cannot_be_asked_about_the_card_is_looked_at(
    plant: Plant,
    rules: RuleParts,
    protected: CarrierAccount,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (card,) = await over_limit(plant, protected)
    monkeypatch.setattr(plant.gateway, "stop", _raising(Transient("超时")))
    monkeypatch.setattr(plant.gateway, "query_operation", _raising(NotOffered("不支持")))
    await rules.run_protect(card)
    clock.advance(ASK_AFTER + timedelta(seconds=1))
    await fire(rules.followup())
    assert (await rules.operations())[0][2] == "pending"
    plant.gateway.status = ("4", "suspended")
    clock.advance(ASK_AFTER + timedelta(seconds=1))
    await fire(rules.followup())
    assert await rules.operations() == STOPPED


async def test_of_two_who_decide_at_once_one_sends(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    cards = await over_limit(plant, protected, 3)
    plant.gateway.hold = asyncio.Event()
    both = [asyncio.create_task(rules.run_protect(card)) for card in cards for _ in range(2)]
    await wait_until(lambda: plant.gateway.open_calls == len(cards), description="every card's one call")
    plant.gateway.hold.set()
    await asyncio.gather(*both, return_exceptions=True)
    assert sorted(calls(plant)) == ["stop"] * len(cards)
    assert await rules.operations() == STOPPED * len(cards)


async def test_a_card_that_rests_waits_as_long_as_it_has_to(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await over_limit(plant, protected)
    plant.gateway.fail[card.id] = CardResting("间隔", timedelta(seconds=77))
    with pytest.raises(PutBack) as refusal:
        await rules.run_protect(card)
    assert refusal.value.delay == timedelta(seconds=77)
    assert await plant.pool.fetchval("SELECT sent_at FROM card_operation") is None


async def test_a_used_up_budget_is_not_asked_again_at_once(plant: Plant, rules: RuleParts) -> None:
    account = await add_account(plant.pool, "poor", protect_enabled=True, daily_quota=0)
    await plant.config.refresh()
    (card,) = await over_limit(plant, account)
    with pytest.raises(PutBack) as refusal:
        await rules.run_protect(card)
    assert refusal.value.delay >= timedelta(minutes=10)
    assert calls(plant) == []


async def test_a_resting_account_is_not_swept(
    plant: Plant, rules: RuleParts, protected: CarrierAccount, clock: FakeClock
) -> None:
    await over_limit(plant, protected, 3)
    await plant.pool.execute(
        "UPDATE carrier_account SET paused_until = $1", clock.now() + timedelta(minutes=1)
    )
    await plant.config.refresh()
    await rules.sweep.sweep(SweepCause.USAGE, draining=_never())
    assert await rules.handed_over() == []
    clock.advance(timedelta(minutes=1))
    await rules.sweep.sweep(SweepCause.USAGE, draining=_never())
    assert len(await rules.handed_over()) == 3


async def test_what_cannot_be_done_now_is_put_back(
    plant: Plant, rules: RuleParts, protected: CarrierAccount
) -> None:
    (card,) = await over_limit(plant, protected)
    with pytest.raises(PutBack, match="网关未配置"):
        await rules.run_protect(card, gateway=None)
    await rules.run_protect(card)
    with pytest.raises(SkipRetry):
        await rules.protect().process_task(_broken(card))
    await plant.pool.execute("UPDATE iot_card SET deleted_at = now()")
    await rules.run_protect(card)


def _broken(card: Card) -> ProcessingTask:
    task = card_task(TaskType.POLLING_PROTECT, card)
    return ProcessingTask(id="t", type=task.type, deadline=task.deadline, payload=b'{"v":1}')


def _raising(error: Exception) -> Any:
    async def call(*_: object) -> None:
        raise error

    return call


def _never() -> asyncio.Event:
    return asyncio.Event()
