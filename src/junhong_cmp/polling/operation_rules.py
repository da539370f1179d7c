"""What becomes of a stop or resume once the carrier has been asked about it. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from junhong_cmp.gateway.errors import AlreadyDone, BadRequest, CardUnknown, GatewayError
from junhong_cmp.gateway.operations import OperationState

ASK_AFTER: Final = timedelta(minutes=2)
"""An operation younger than this may still be on its way through whoever sends it."""
GIVE_UP_AFTER: Final = timedelta(hours=24)
"""No carrier works on a stop or resume for longer: its outcome stays unknown."""


class OperationStatus(StrEnum):
    """The values of ``card_operation.status``."""

    PENDING = "pending"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status an operation gets, and why it is not done."""

    status: OperationStatus
    error: str | None = None


def judge_operation(status: OperationStatus, found: OperationState | GatewayError, age: timedelta) -> Verdict:
    """Return what the operation is after the carrier's answer, or its refusal; perhaps what it was before.

    One the carrier never saw has failed and may be sent again under the same request id.
    """
    settled = _settle(found)
    if settled is not None:
        return settled
    if age >= GIVE_UP_AFTER:
        return Verdict(OperationStatus.UNKNOWN, "超过时限仍没有结果")
    if found is OperationState.PENDING:
        return Verdict(OperationStatus.SENT)
    return Verdict(status, str(found))


def _settle(found: OperationState | GatewayError) -> Verdict | None:
    """Return the verdict of an answer after which nothing more is to be expected."""
    match found:
        case OperationState.DONE | AlreadyDone():
            return Verdict(OperationStatus.DONE)
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
