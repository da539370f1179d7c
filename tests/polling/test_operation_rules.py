"""What an operation is after each reply to sending it."""

from datetime import timedelta

import pytest

from junhong_cmp.cards.model import CardStatus
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    BadRequest,
    BadResponse,
    CardUnknown,
    GatewayError,
    NotOffered,
    Transient,
)
from junhong_cmp.gateway.operations import OperationState
from junhong_cmp.polling.operation_rules import (
    MOST_SENDS,
    OperationKind,
    OperationStatus,
    judge_operation,
    judge_reply,
    state_by_card,
)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (OperationState.DONE, "done"),
        (OperationState.PENDING, "sent"),
        (OperationState.FAILED, "failed"),
        (OperationState.UNKNOWN, "failed"),
        (AlreadyDone("x"), "done"),
        (BadRequest("x"), "failed"),
        (NotOffered("x"), "failed"),
        (CardUnknown("x"), "failed"),
        (Transient("x"), "pending"),
        (BadResponse("x"), "pending"),
    ],
)
def test_a_reply_tells_how_far_it_has_come(reply: OperationState | GatewayError, status: str) -> None:
    verdict = judge_reply(reply, sends=1)
    assert verdict.status == status
    assert not verdict.send_again, "only the follow-up, which has asked, has anything sent again"


def test_found_done_at_the_first_call_was_done_by_somebody_else() -> None:
    assert not judge_reply(AlreadyDone("x"), sends=1).by_us
    assert judge_reply(AlreadyDone("x"), sends=2).by_us
    assert judge_reply(OperationState.DONE, sends=1).by_us


def test_what_was_never_seen_is_sent_again_a_few_times() -> None:
    def judge(sends: int) -> tuple[OperationStatus, bool]:
        verdict = judge_operation(OperationStatus.PENDING, OperationState.UNKNOWN, timedelta(hours=1), sends)
        return verdict.status, verdict.send_again

    assert judge(1) == (OperationStatus.PENDING, True)
    assert judge(MOST_SENDS) == (OperationStatus.FAILED, False)


def test_what_was_accepted_and_then_forgotten_has_failed() -> None:
    verdict = judge_operation(OperationStatus.SENT, OperationState.UNKNOWN, timedelta(hours=1))
    assert (verdict.status, verdict.send_again) == (OperationStatus.FAILED, False)


@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        (OperationKind.STOP, CardStatus.SUSPENDED, OperationState.DONE),
        (OperationKind.STOP, CardStatus.ACTIVE, OperationState.PENDING),
        (OperationKind.STOP, CardStatus.CANCELLED, OperationState.FAILED),
        (OperationKind.RESUME, CardStatus.ACTIVE, OperationState.DONE),
        (OperationKind.RESUME, CardStatus.SUSPENDED, OperationState.PENDING),
        (OperationKind.RESUME, CardStatus.UNKNOWN, OperationState.PENDING),
        (OperationKind.RESUME, CardStatus.PRE_CANCELLED, OperationState.FAILED),
    ],
)
def test_the_cards_state_tells_too(kind: OperationKind, status: CardStatus, state: OperationState) -> None:
    assert state_by_card(kind, status) is state
