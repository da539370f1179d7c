"""What became of stops and resumes is asked for, within limits, and written down once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.polling.handlers.firing import fire
from tests.polling.plant import Plant, add_account, add_cards
from tests.polling.rule_parts import RuleParts

from junhong_cmp.asynq.errors import PutBack
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.clock import SystemClock
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    BadRequest,
    CardUnknown,
    GatewayError,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.handlers.operation_followup import OperationFollowupHandler
from junhong_cmp.polling.operation_rules import OperationStatus, judge_operation

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("found", "age", "status"),
    [
        (OperationState.DONE, HOUR, "done"),
        (AlreadyDone(), HOUR, "done"),
        (OperationState.FAILED, HOUR, "failed"),
        (OperationState.UNKNOWN, HOUR, "pending"),
        (OperationState.UNKNOWN, 24 * HOUR, "failed"),
        (CardUnknown(), HOUR, "failed"),
        (BadRequest("x"), HOUR, "unknown"),
        (OperationState.PENDING, HOUR, "sent"),
        (OperationState.PENDING, 24 * HOUR, "unknown"),
        (Transient("x"), HOUR, "pending"),
        (Transient("x"), 24 * HOUR, "unknown"),
    ],
)
def test_a_verdict_follows_from_answer_and_age(
    found: OperationState | GatewayError, age: timedelta, status: str
) -> None:
    verdict = judge_operation(OperationStatus.PENDING, found, age)
    assert verdict.status == status
    assert (verdict.error is None) is (status in {"done", "sent"})


def handler_of(plant: Plant, **changes: Any) -> OperationFollowupHandler:
    return RuleParts(plant, SystemClock()).followup(**changes)


async def order(plant: Plant, card: Card, request_id: str, *, age: timedelta = HOUR) -> None:
    await plant.pool.execute(
        "INSERT INTO card_operation (card_id, kind, reason, request_id, status, requested_at, sent_at) "
        "VALUES ($1, 'stop', 'manual', $2, 'sent', $3, $3)",
        card.id,
        request_id,
        datetime.now(UTC) - age,
    )


async def statuses(plant: Plant) -> dict[str, str]:
    rows = await plant.pool.fetch("SELECT request_id, status FROM card_operation")
    return {row["request_id"]: row["status"] for row in rows}


async def test_outcomes_are_written_down_and_asked_for_once(plant: Plant, account: CarrierAccount) -> None:
    cards = await add_cards(plant.pool, account, 3)
    done = cards[0]
    await plant.gateway.stop(gateway_account(account), CardRef(done.id, done.iccid), "done")
    for card, request_id in zip(cards, ("done", "lost", "young"), strict=True):
        await order(plant, card, request_id, age=timedelta() if request_id == "young" else HOUR)
    handler = handler_of(plant)
    await fire(handler)
    assert await statuses(plant) == {"done": "done", "lost": "failed", "young": "sent"}
    assert await plant.pool.fetchval("SELECT verified_at FROM card_operation WHERE request_id = 'done'")
    asked = len(plant.gateway.calls)
    await fire(handler)
    assert len(plant.gateway.calls) == asked


async def test_without_a_gateway_it_is_put_back_if_there_is_something_to_ask(
    plant: Plant, account: CarrierAccount
) -> None:
    handler = handler_of(plant, gateway=None)
    await fire(handler)
    (card,) = await add_cards(plant.pool, account, 1)
    await order(plant, card, "a")
    with pytest.raises(PutBack, match="网关未配置"):
        await fire(handler)


async def test_an_account_that_refuses_rests_and_keeps_no_other_waiting(
    plant: Plant, account: CarrierAccount
) -> None:
    other = await add_account(plant.pool, "other")
    await plant.config.refresh()
    mine = await add_cards(plant.pool, account, 3)
    (theirs,) = await add_cards(plant.pool, other, 1, first=50)
    for card in mine:
        await order(plant, card, f"mine-{card.id}")
        plant.gateway.fail[card.id] = Throttled("太快", timedelta(minutes=5))
    await order(plant, theirs, "theirs")
    await fire(handler_of(plant))
    assert (await statuses(plant))["theirs"] == "failed"
    assert len(plant.gateway.calls) == 2
    assert await plant.pool.fetchval("SELECT pause_reason FROM carrier_account WHERE id = $1", account.id)
    await fire(handler_of(plant))
    assert len(plant.gateway.calls) == 2


async def test_what_fails_in_passing_is_asked_again(plant: Plant, account: CarrierAccount) -> None:
    (card,) = await add_cards(plant.pool, account, 1)
    await order(plant, card, "a")
    plant.gateway.fail_all = Transient("断开")
    await fire(handler_of(plant))
    row = await plant.pool.fetchrow("SELECT status, attempts, error FROM card_operation")
    assert row is not None
    assert (row["status"], row["attempts"], row["error"]) == ("sent", 1, "断开")
    plant.gateway.fail_all = None
    await fire(handler_of(plant))
    assert await statuses(plant) == {"a": "failed"}
