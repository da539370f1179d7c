"""The code tables of China Telecom's platform: states of cards, and refusals → what the caller does."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from junhong_cmp.gateway.drivers.ctcc_body import CtccReply
from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    BadResponse,
    CardResting,
    CardUnknown,
    GatewayError,
    Maintenance,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.json_body import excerpt

OK: Final = "0"
NO_REAL_NAME: Final = "-5"
"""In the answer about a card's real name: nobody is registered for it."""
STOP: Final = "19"
RESUME: Final = "20"
"""Order types of a change: service stopped with the number kept, and resumed."""

MANAGED: Final = "6"
STATUSES: Final[Mapping[str, tuple[str, str]]] = {
    "1": ("可激活", "ready"),
    "2": ("测试激活", "testing"),
    "3": ("测试去激活", "testing"),
    "4": ("在用", "active"),
    "5": ("停机", "suspended"),
    MANAGED: ("运营商管理状态", "unknown"),
    "7": ("拆机", "cancelled"),
}
"""Main states: the platform's word and ours; ``MANAGED`` says that the platform itself does not know."""

_ORDER_UNDER_WAY: Final = "-7"
ORDER_TIME: Final = timedelta(minutes=3)
"""How long a card is left alone whose last order is still being worked on."""

_REFUSALS: Final[Mapping[str, type[GatewayError]]] = {
    "-1": AuthRejected,  # user, password or permission
    "-2": BadRequest,  # a parameter is missing
    "-3": AuthRejected,  # the signature
    "-4": CardUnknown,
    "101004": Throttled,
}
_ORDERED_ALREADY: Final = "-5"
_DONE_WORDS: Final = ("重复订购", "无需再次办理", "已存在停机类型")
_OTHER_WORDS: Final[Mapping[str, type[GatewayError]]] = {"频繁": Throttled, "维护": Maintenance}


def refusal_of(reply: CtccReply, *, changing: bool) -> GatewayError:
    """Name a refusal by its code, or by the sentence the platform hands through from behind it.

    Only a change can be done already: on a question the same code or words mean something else.
    """
    said = f"电信平台拒绝（{excerpt(reply.code.encode()) or '无代码'}）：{excerpt(reply.text.encode())}"
    if changing and (reply.code == _ORDERED_ALREADY or any(word in reply.text for word in _DONE_WORDS)):
        return AlreadyDone(said)
    if changing and reply.code == _ORDER_UNDER_WAY:
        return CardResting(said, ORDER_TIME)
    known = _REFUSALS.get(reply.code)
    if known is not None:
        return known(said)
    for word, kind in _OTHER_WORDS.items():
        if word in reply.text:
            return kind(said)
    return Transient(said) if reply.code else BadResponse(said)
