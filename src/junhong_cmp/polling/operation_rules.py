"""What becomes of a stop or resume once the carrier has been asked for it, or about it. Pure.

An operation is ``pending`` until the carrier has accepted it. A pending one that has been sent may or may not
have reached the carrier: it is asked about, and sent again only when the carrier says it never saw it.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from junhong_cmp.cards.model import CardStatus
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    BadRequest,
    CardUnknown,
    GatewayError,
    NotOffered,
)
from junhong_cmp.gateway.operations import OperationState

ASK_AFTER: Final = timedelta(minutes=2)
"""An operation younger than this may still be on its way through whoever sends it."""
GIVE_UP_AFTER: Final = timedelta(hours=24)
"""No carrier works on a stop or resume for longer: its outcome stays unknown."""
UNSEEN_AFTER: Final = timedelta(minutes=15)
"""A card shows a stop or resume that reached its carrier by then, where only its state can be asked."""
MOST_SENDS: Final = 5
"""Times an operation is sent that the carrier never sees."""


class OperationKind(StrEnum):
    """What the gateway can be asked to do to a card."""

    STOP = "stop"
    RESUME = "resume"


class OperationStatus(StrEnum):
    """The values of ``card_operation.status``."""

    PENDING = "pending"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status an operation gets, and why it is not done.

    ``send_again``: the carrier has certainly not acted on it. ``by_us``: a card found in the wanted state got
    there by this operation, as far as anybody can tell.
    """

    status: OperationStatus
    error: str | None = None
    send_again: bool = False
    by_us: bool = True


DONE: Final = Verdict(OperationStatus.DONE)


def judge_reply(reply: OperationState | GatewayError, sends: int) -> Verdict:
    """Return what an operation is after the reply to sending it for the ``sends``-th time.

    A reply that says the call was never made (a pause, no connection) is not for here.
    A card that was in the wanted state before the first call was brought there by somebody else.
    """
    match reply:
        case OperationState.DONE:
            return DONE
        case OperationState.PENDING:
            return Verdict(OperationStatus.SENT)
        case AlreadyDone():
            return DONE if sends > 1 else Verdict(OperationStatus.DONE, "执行前卡已处于目标状态", by_us=False)
        case BadRequest() | NotOffered():
            return Verdict(OperationStatus.FAILED, str(reply))
    settled = _settle(reply)
    return settled if settled is not None else Verdict(OperationStatus.PENDING, str(reply))


def judge_operation(
    status: OperationStatus, found: OperationState | GatewayError, age: timedelta, sends: int = 1
) -> Verdict:
    """Return what an operation is after the carrier was asked about it; perhaps what it was before."""
    if found is OperationState.UNKNOWN and status is OperationStatus.PENDING and age < GIVE_UP_AFTER:
        return _unseen("运营商没有收到该操作", sends)
    settled = _settle(found)
    if settled is not None:
        return settled
    if age >= GIVE_UP_AFTER:
        return Verdict(OperationStatus.UNKNOWN, "超过时限仍没有结果")
    if found is OperationState.PENDING:
        return Verdict(OperationStatus.SENT)
    return Verdict(status, str(found))


def state_by_card(kind: OperationKind, status: CardStatus) -> OperationState:
    """Return how far an operation has come, by the card's state alone."""
    if kind is OperationKind.STOP:
        wanted = status is CardStatus.SUSPENDED
    else:
        wanted = status in {CardStatus.ACTIVE, CardStatus.TESTING, CardStatus.READY}
    if wanted:
        return OperationState.DONE
    if status in {CardStatus.PRE_CANCELLED, CardStatus.CANCELLED}:
        return OperationState.FAILED
    return OperationState.PENDING


def judge_by_card(
    status: OperationStatus, found: OperationState, waited: timedelta, age: timedelta, sends: int
) -> Verdict:
    """Return what an operation is, sent ``waited`` ago, of which only the card's state can be asked.

    One whose reply was lost has not reached the carrier if the card does not show it in time. To send it
    again does no harm: a card already in the wanted state stays in it.
    """
    if found is not OperationState.PENDING or status is not OperationStatus.PENDING or age >= GIVE_UP_AFTER:
        return judge_operation(status, found, age, sends)
    if waited < UNSEEN_AFTER:
        return Verdict(status, "应答丢失，卡尚未处于目标状态")
    error = "应答丢失，卡一直没有处于目标状态"
    if sends >= MOST_SENDS:
        return Verdict(OperationStatus.UNKNOWN, error)  # it may still come to pass
    return Verdict(status, error, send_again=True)


def _unseen(error: str, sends: int) -> Verdict:
    if sends >= MOST_SENDS:
        return Verdict(OperationStatus.FAILED, error)
    return Verdict(OperationStatus.PENDING, error, send_again=True)


def _settle(found: OperationState | GatewayError) -> Verdict | None:
    """Return the verdict of an answer after which nothing more is to be expected."""
    match found:
        case OperationState.DONE | AlreadyDone():
            return DONE
        case OperationState.FAILED:
            return Verdict(OperationStatus.FAILED, "运营商报告操作失败")
        case OperationState.UNKNOWN:
            return Verdict(OperationStatus.FAILED, "运营商没有收到该操作")
        case CardUnknown():
            return Verdict(OperationStatus.FAILED, "运营商不认识该卡")
        case BadRequest():
            return Verdict(OperationStatus.UNKNOWN, str(found))
        case _:
            return None
