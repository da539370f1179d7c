"""Answers of China Telecom's platform, checked: about the card that was asked for, whole, and possible."""

import re
from datetime import UTC, datetime, timedelta, timezone
from ipaddress import ip_address
from typing import Final

from junhong_cmp.gateway.card_list import CardPage, ListedCard
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.ctcc_body import Fields
from junhong_cmp.gateway.drivers.ctcc_codes import MANAGED, STATUSES
from junhong_cmp.gateway.drivers.ctcc_fields import an_object, text_of
from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.quantities import whole_kb
from junhong_cmp.gateway.sessions import SessionAnswer

_USAGE: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?(?:KB|MB|GB)")
_ICCID: Final = re.compile(r"[0-9A-F]{19,20}")
_ONLINE: Final = "0"
_OFFLINE: Final = "-1"
_CARRIER_TIME: Final = timezone(timedelta(hours=8))
_NOBODY: Final = frozenset({"", "null"})


def used_kb(fields: Fields) -> int:
    """Return the month's usage, which the platform writes like ``12.34MB``."""
    value = text_of(fields, "TOTAL_BYTES_CNT")
    if not _USAGE.fullmatch(value):
        raise BadResponse("网关应答的用量不是平台的写法")
    return whole_kb(value, None, default_unit="MB")


def status_of(fields: Fields) -> tuple[str, str]:
    """Return the card's state in the platform's words and in ours.

    A card may have several products, each with a state; the first that the platform itself knows counts.
    """
    products = fields.get("productInfo")
    if not isinstance(products, list) or not products:
        raise BadResponse("网关应答缺少字段或字段无效：productInfo")
    codes = [text_of(product, "productMainStatusCd") for product in map(an_object, products)]
    code = next((code for code in codes if code != MANAGED), codes[0])
    return status_of_code(code)


def status_of_code(code: str) -> tuple[str, str]:
    """Return a state's code with its word, and our word for it; an unknown code is kept and ``unknown``."""
    word, status = STATUSES.get(code, ("", "unknown"))
    return f"{code} {word}".strip(), status


def has_real_name(fields: Fields) -> bool:
    """Tell whether somebody is registered for the card; who it is stays unread."""
    return text_of(an_object(fields.get("RESULT")), "certNumber", may_be_empty=True).lower() not in _NOBODY


def session_of(description: Fields, card: CardRef, at: datetime) -> SessionAnswer:
    """Return whether the card is on the network, since when and with which address."""
    result = text_of(description, "result")
    if result not in {_ONLINE, _OFFLINE}:
        raise BadResponse("网关应答的在线状态无法识别")
    online = result == _ONLINE
    address = text_of(description, "framedIpAddress", may_be_empty=True)
    began = text_of(description, "startTime", may_be_empty=True)
    return SessionAnswer(
        iccid=card.iccid,
        online=online,
        ip=_address(address) if online and address else None,
        since=_instant(began, at) if online and began else None,
        at=at,
    )


def card_page(description: Fields, page: int) -> CardPage:
    """Return a page of the customer's cards; the page after the last is empty."""
    items = description.get("simList")
    if not isinstance(items, list):
        raise BadResponse("网关响应无效：卡列表缺少 simList")
    if text_of(description, "pageIndex") != str(page):
        raise BadResponse("网关应答的页码与请求不符")
    cards = tuple(_listed(an_object(item)) for item in items)
    return CardPage(cards=cards, next_cursor=str(page + 1) if cards else None)


def _listed(item: Fields) -> ListedCard:
    iccid = text_of(item, "iccid").upper()
    if not _ICCID.fullmatch(iccid):
        raise BadResponse("网关响应无效：卡列表中的卡号不合法")
    raw, status = _listed_status(item.get("simStatus"))
    number = text_of(item, "accNumber", may_be_empty=True)
    return ListedCard(iccid=iccid, msisdn=number or None, raw_status=raw, status=status)


def _listed_status(states: object) -> tuple[str | None, str]:
    """Return a listed card's state, which comes in a list; a card may be listed without one."""
    code = (states[0] if states else None) if isinstance(states, list) else states
    return (None, "unknown") if code is None else status_of_code(text_of({"simStatus": code}, "simStatus"))


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise BadResponse("网关应答的 IP 地址无效") from error


def _instant(text: str, now: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=_CARRIER_TIME).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadResponse("网关应答的时间无效") from error
    return min(moment, now)
