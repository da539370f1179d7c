"""What a gateway answered, checked: about the card that was asked for, whole, and possible."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from junhong_cmp.gateway.card_list import CardPage, ListedCard
from junhong_cmp.gateway.client import (
    CardRef,
    RealNameAnswer,
    StatusAnswer,
    UsageAnswer,
)
from junhong_cmp.gateway.errors import BadResponse, WrongCard
from junhong_cmp.gateway.operations import OperationAnswer, OperationState
from junhong_cmp.gateway.quantities import whole_kb
from junhong_cmp.gateway.sessions import SessionAnswer

Fields = Mapping[str, object]

_STATUSES: Final = frozenset(
    {"unknown", "inventory", "testing", "ready", "active", "suspended", "pre_cancelled", "cancelled"}
)
_REALNAME_STATUSES: Final = frozenset({"not_required", "unverified", "verified", "unknown"})
_UNKNOWN: Final = "unknown"
_LONGEST_TEXT: Final = 128
_CLOCK_TOLERANCE: Final = timedelta(minutes=5)
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""No SIM this platform knows is older; a zero date is no date."""
_ICCID19: Final = 19
_ICCID: Final = re.compile(r"[0-9A-F]{19,20}")


def usage_answer(fields: Fields, card: CardRef, *, default_unit: str, now: datetime) -> UsageAnswer:
    """Check an answer of ``/v1/usage/query``, or one item of a batch."""
    check_card(fields, card)
    unit = _text(fields, "unit") if fields.get("unit") is not None else None
    used_kb = whole_kb(fields.get("used"), unit, default_unit=default_unit)
    return UsageAnswer(iccid=card.iccid, used_kb=used_kb, reading_at=_instant(fields, "reading_at", now))


def status_answer(fields: Fields, card: CardRef, *, now: datetime) -> StatusAnswer:
    """Check an answer of ``/v1/status/query``; one we have no word for is ``unknown``, raw text kept."""
    check_card(fields, card)
    said = _text(fields, "status")
    raw = _text(fields, "raw_status") if fields.get("raw_status") is not None else said
    status = said if said in _STATUSES else _UNKNOWN
    return StatusAnswer(iccid=card.iccid, raw=raw, status=status, at=_instant(fields, "observed_at", now))


def realname_answer(fields: Fields, card: CardRef, *, now: datetime) -> RealNameAnswer:
    """Check an answer of ``/v1/real-name/query``."""
    check_card(fields, card)
    said = _text(fields, "real_name")
    status = said if said in _REALNAME_STATUSES else _UNKNOWN
    return RealNameAnswer(iccid=card.iccid, status=status, at=_instant(fields, "observed_at", now))


def session_answer(fields: Fields, card: CardRef, *, now: datetime) -> SessionAnswer:
    """Check an answer of ``/v1/session/query``."""
    check_card(fields, card)
    online = fields.get("online")
    if not isinstance(online, bool):
        raise BadResponse("网关应答缺少字段或字段无效：online")
    return SessionAnswer(
        iccid=card.iccid,
        online=online,
        ip=_address(fields),
        since=_instant(fields, "since", now) if fields.get("since") is not None else None,
        at=_instant(fields, "observed_at", now),
    )


def card_page(fields: Fields) -> CardPage:
    """Check an answer of ``/v1/cards/list``."""
    items = fields.get("items")
    if not isinstance(items, list):
        raise BadResponse("网关响应无效：卡列表缺少 items")
    cursor = _text(fields, "next_cursor") if fields.get("next_cursor") is not None else None
    return CardPage(cards=tuple(_listed_card(item) for item in items), next_cursor=cursor)


def _listed_card(item: object) -> ListedCard:
    if not isinstance(item, dict):
        raise BadResponse("网关响应无效：卡列表的条目不是对象")
    iccid = _text(item, "iccid").upper()
    if not _ICCID.fullmatch(iccid):
        raise BadResponse("网关响应无效：卡列表中的卡号不合法")
    said = _text(item, "status") if item.get("status") is not None else _UNKNOWN
    return ListedCard(
        iccid=iccid,
        msisdn=_text(item, "msisdn") if item.get("msisdn") is not None else None,
        raw_status=_text(item, "raw_status") if item.get("raw_status") is not None else None,
        status=said if said in _STATUSES else _UNKNOWN,
    )


def operation_answer(fields: Fields, card: CardRef, request_id: str, *, now: datetime) -> OperationAnswer:
    """Check an answer of ``/v1/cards/stop``, ``/v1/cards/resume`` or ``/v1/operations/query``."""
    check_card(fields, card)
    if _text(fields, "request_id") != request_id:
        raise WrongCard("网关应答的操作编号与请求不符")
    said = _text(fields, "state")
    try:
        state = OperationState(said)
    except ValueError as error:
        raise BadResponse(f"网关应答的操作状态无法识别：{said!r}") from error
    moment = _instant(fields, "observed_at", now)
    return OperationAnswer(request_id=request_id, iccid=card.iccid, state=state, at=moment)


def check_card(fields: Fields, card: CardRef) -> None:
    """Return if the answer echoes the card.

    Raises:
        WrongCard: it is about another one.

    """
    if not same_card(_text(fields, "iccid").upper(), card.iccid.upper()):
        raise WrongCard("网关应答的卡与所查的卡不符")


def same_card(one: str, other: str) -> bool:
    """Tell whether two ICCIDs name one card: equal, or one is the other without its 20th character."""
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) == _ICCID19 and len(longer) == _ICCID19 + 1 and longer.startswith(shorter)


def _address(fields: Fields) -> str | None:
    if fields.get("ip") is None:
        return None
    try:
        return str(ip_address(_text(fields, "ip")))
    except ValueError as error:
        raise BadResponse("网关应答的 IP 地址无效") from error


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise BadResponse(f"网关应答缺少字段或字段无效：{key}")
    return value


def _instant(fields: Fields, key: str, now: datetime) -> datetime:
    """Read an aware instant; one from the future would block every later, honest reading.

    One from before all SIMs is a carrier's way of having none, and belongs to no billing cycle.
    """
    try:
        moment = datetime.fromisoformat(_text(fields, key))
        if moment.tzinfo is None:
            raise BadResponse(f"网关应答的时间没有时区：{key}")
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadResponse(f"网关应答的时间无效：{key}") from error
    if moment < _EARLIEST:
        raise BadResponse(f"网关应答的时间过早：{key}")
    if moment > now + _CLOCK_TOLERANCE:
        raise BadResponse(f"网关应答的时间在未来：{key}")
    return moment
