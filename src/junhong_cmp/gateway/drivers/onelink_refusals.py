"""Refusals of OneLink → what the caller does.

A refusal comes with HTTP 200 and a code in ``status``. The carrier's list of codes is not
public as a whole: the table holds those that are known from several sources, and for any other
the wording decides between "later" and "not this card now". An unknown refusal is never read
as a verdict about the card.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    CardResting,
    CardUnknown,
    GatewayError,
    Maintenance,
    QuotaExhausted,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.json_body import excerpt

OK: Final = "0"
TOKEN_EXPIRED: Final = "12021"  # noqa: S105 - a code, not a token

CHANGE_REST: Final = timedelta(minutes=3)
"""The carrier changes a card once in this time."""

_Make = Callable[[str], GatewayError]


def _resting(text: str) -> GatewayError:
    return CardResting(text, CHANGE_REST)


CODES: Final[Mapping[str, _Make]] = {
    "500": Transient,  # internal error
    "11000": BadRequest,  # a parameter is wrong
    "11011": CardUnknown,  # no such card
    "12004": AuthRejected,  # transid, appid or token not accepted
    "12009": CardUnknown,  # the card is another customer's
    "12010": CardUnknown,  # no such card
    "12022": AuthRejected,  # appid or password not accepted
    "12047": AlreadyDone,  # already in the wanted state
    "12048": AlreadyDone,
    "12089": BadRequest,  # the card's state allows no such change
    "12098": BadRequest,  # stopped for a reason the customer may not lift
    "12099": BadRequest,  # cannot be resumed: the plan has ended
    "12100": BadRequest,  # cannot be resumed: the plan is used up
    "19010": Transient,  # any other error
}

_WORDINGS: Final[tuple[tuple[re.Pattern[str], _Make], ...]] = (
    (re.compile("同一(?:张)?(?:卡|号码)|重复(?:办理|操作)"), _resting),
    (re.compile("(?:[今当每]日|当天|[本当每]月).*(?:次数|调用).*(?:上限|超|用完)"), QuotaExhausted),
    (re.compile("频繁|频率|次数|流控|流量控制|限流|并发|过快|QPS|TPS", re.IGNORECASE), Throttled),
    (re.compile("维护|割接|系统升级"), Maintenance),
)
_CODE: Final = re.compile(r"[0-9A-Za-z_-]{1,16}")


def code_of(fields: Mapping[str, object]) -> str:
    """Return the code of an answer or of one item of it.

    Raises:
        BadResponse: it has none.

    """
    status = fields.get("status")
    if isinstance(status, int) and not isinstance(status, bool):
        status = str(status)
    if not isinstance(status, str) or not _CODE.fullmatch(status):
        raise BadResponse("网关响应无效：OneLink 应答没有状态码")
    return status


def refusal_of(code: str, message: object, *, change: bool) -> GatewayError:
    """Name a refusal; ``change`` tells whether a stop or resume was asked for."""
    said = excerpt(message.encode(errors="replace")) if isinstance(message, str) else ""
    text = f"OneLink 拒绝（{code}）{'：' if said else ''}{said}"
    make = CODES.get(code) or _by_wording(said)
    if make is AlreadyDone and not change:
        return BadResponse(text)
    if make is _resting and not change:  # asked about too often: its own trouble, as any passing one
        return Transient(text, maybe_executed=False)
    return make(text)


def _by_wording(said: str) -> _Make:
    return next((make for pattern, make in _WORDINGS if pattern.search(said)), Transient)
