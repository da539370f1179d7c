"""Answers of China Unicom's platform, checked: to this question, about these cards, whole and possible."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from junhong_cmp.gateway.batch_items import answers_by_card
from junhong_cmp.gateway.client import CardRef, RealNameAnswer, StatusAnswer, UsageAnswer
from junhong_cmp.gateway.drivers.unicom_codes import OK, REALNAME_STATUSES, SIM_STATUSES, refusal_of
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, WrongCard
from junhong_cmp.gateway.json_body import decode_object
from junhong_cmp.gateway.quantities import whole_kb

Fields = Mapping[str, object]
A = TypeVar("A")

_UNIT: Final = "MB"
_CODE: Final = re.compile(r"[0-9]{1,3}")
_RESULT: Final = re.compile(r"[0-9A-Za-z_-]{1,16}")
_LONGEST_TEXT: Final = 128


def read_data(body: bytes, message_id: str, *, changing: bool) -> Fields:
    """Return what a successful answer holds.

    Raises:
        BadResponse: it is no answer of the platform.
        WrongCard: it answers another question than ours.
        GatewayError: a refusal, named by what to do.

    """
    fields = decode_object(body)
    status = _code(fields, "status", _RESULT)
    if status != OK:
        raise refusal_of(status, _message(fields), changing=changing)
    data = fields.get("data")
    if not isinstance(data, dict):
        raise BadResponse("网关响应无效：缺少 data")
    if _text(data, "messageId") != message_id:
        raise WrongCard("网关应答的消息编号与请求不符")
    code = _code(data, "resultCode", _RESULT)
    if code != OK:
        raise refusal_of(code, _message(data) or _message(fields), changing=changing)
    return data


def split_terminals(
    data: Fields, cards: Sequence[CardRef], read: Callable[[Fields, CardRef], A]
) -> dict[int, A | GatewayError]:
    """Return an answer or an error for each card; one bad terminal never spoils its neighbours.

    The platform leaves out cards it does not know. Only a card that is alone, or missing among
    others that are there, is taken for unknown: an empty list for many is no answer.

    Raises:
        BadResponse: there is no list of terminals, or none that names a card.
        WrongCard: no terminal is one that was asked about.

    """
    terminals = data.get("terminals")
    if not isinstance(terminals, list):
        raise BadResponse("网关响应无效：缺少 terminals 列表")
    believable = bool(terminals) or len(cards) == 1
    missing = CardUnknown("联通平台没有此卡") if believable else BadResponse("应答中没有此卡")
    return answers_by_card(terminals, cards, read, missing)


def usage_of(terminal: Fields, card: CardRef, at: datetime) -> UsageAnswer:
    """Return the data used since the 27th, to ``at``: the platform writes MB without a unit."""
    value = terminal.get("monthToDateDataUsage")
    used_kb = whole_kb(value, _UNIT, default_unit=_UNIT)
    return UsageAnswer(iccid=card.iccid, used_kb=used_kb, reading_at=at)


def status_of(terminal: Fields, card: CardRef, asked_at: datetime) -> StatusAnswer:
    """Return the card's state; an unknown code is kept and ``unknown``."""
    code = _code(terminal, "simStatus", _CODE)
    word, status = SIM_STATUSES.get(code, ("", "unknown"))
    return StatusAnswer(iccid=card.iccid, raw=f"{code} {word}".strip(), status=status, at=asked_at)


def realname_of(terminal: Fields, card: CardRef, asked_at: datetime) -> RealNameAnswer:
    """Return the card's real-name state."""
    status = REALNAME_STATUSES.get(_code(terminal, "realNameStatus", _CODE), "unknown")
    return RealNameAnswer(iccid=card.iccid, status=status, at=asked_at)


def _code(fields: Fields, name: str, form: re.Pattern[str]) -> str:
    code = _text(fields, name)
    if not form.fullmatch(code):
        raise BadResponse(f"网关应答的代码无效：{name}")
    return code


def _message(fields: Fields) -> str:
    for name in ("message", "resultMessage", "resultMsg", "errorMessage"):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _text(fields: Fields, name: str) -> str:
    """Return a short, printable text; codes come as numbers from some parts of the platform."""
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise BadResponse(f"网关应答缺少字段或字段无效：{name}")
    return value
