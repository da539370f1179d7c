"""What OneLink answered, checked.

An answer about one card mostly does not name it; where one does, it has to be the one that was
asked for. Changes and batches always name their cards.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from junhong_cmp.gateway.answers import same_card
from junhong_cmp.gateway.client import CardRef, RealNameAnswer, StatusAnswer, UsageAnswer
from junhong_cmp.gateway.drivers.onelink_statuses import (
    CARD_STATUSES,
    NO_SUCH_NUMBER,
    REALNAME_STATUSES,
    UNKNOWN,
)
from junhong_cmp.gateway.drivers.onelink_transid import CARRIER_TIME
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, WrongCard
from junhong_cmp.gateway.quantities import whole_kb
from junhong_cmp.gateway.sessions import SessionAnswer
from junhong_cmp.gateway.tokens import Token

Fields = Mapping[str, object]

_LONGEST_TEXT: Final = 128
_LONGEST_TOKEN: Final = 1024
_USUAL_LIFETIME: Final = timedelta(hours=1)
_LONGEST_LIFETIME_S: Final = 86_400
_CLOCK_TOLERANCE: Final = timedelta(minutes=5)
_ONLINE: Final[Mapping[str, bool]] = {"00": False, "01": True}


def only_item(fields: Fields) -> Fields:
    """Return the one item of an answer about one thing.

    Raises:
        BadResponse: there is none, or there are several.

    """
    items = fields.get("result")
    if not isinstance(items, list) or len(items) != 1 or not isinstance(items[0], dict):
        raise BadResponse("网关响应无效：OneLink 应答的 result 不是恰好一项")
    return items[0]


def check_card(item: Fields, card: CardRef, *, named: bool = False) -> None:
    """Return if every number in the item is the card's; with ``named`` there has to be one.

    Raises:
        WrongCard: the item is about another card.
        BadResponse: the item names no card though it must.

    """
    iccid, msisdn = _optional(item, "iccid"), _optional(item, "msisdn")
    if iccid is not None and not same_card(iccid.upper(), card.iccid.upper()):
        raise WrongCard("OneLink 应答的卡与所查的卡不符")
    comparable = msisdn is not None and card.msisdn is not None
    if comparable and msisdn != card.msisdn:
        raise WrongCard("OneLink 应答的号码与所查的卡不符")
    if named and iccid is None and not comparable:
        raise BadResponse("网关响应无效：OneLink 应答没有指明是哪张卡")


def usage_kb(item: Fields) -> int:
    """Return the usage in an item; the carrier writes a blank for a card that has not used anything yet."""
    amount = item.get("dataAmount")
    if isinstance(amount, str) and amount.isspace():
        return 0
    return whole_kb(amount, None, default_unit="KB")


def usage_answer(item: Fields, card: CardRef, at: datetime) -> UsageAnswer:
    """Check an answer about usage as of ``at``."""
    check_card(item, card)
    return UsageAnswer(iccid=card.iccid, used_kb=usage_kb(item), reading_at=at)


def status_answer(item: Fields, card: CardRef, now: datetime) -> StatusAnswer:
    """Check an answer about the card's state; a code we have no word for is ``unknown``."""
    check_card(item, card)
    raw = _text(item, "cardStatus")
    if raw == NO_SUCH_NUMBER:
        raise CardUnknown("OneLink 没有这张卡（状态 99：号码不存在）")
    return StatusAnswer(iccid=card.iccid, raw=raw, status=CARD_STATUSES.get(raw, UNKNOWN), at=now)


def realname_answer(item: Fields, card: CardRef, now: datetime) -> RealNameAnswer:
    """Check an answer about real-name registration."""
    check_card(item, card)
    status = REALNAME_STATUSES.get(_text(item, "realNameStatus"), UNKNOWN)
    return RealNameAnswer(iccid=card.iccid, status=status, at=now)


def session_answer(item: Fields, card: CardRef, now: datetime) -> SessionAnswer:
    """Check an answer about data sessions, of which a card has one for each access point it may use."""
    check_card(item, card)
    sessions = item.get("simSessionList")
    if not isinstance(sessions, list) or not all(isinstance(session, dict) for session in sessions):
        raise BadResponse("网关应答缺少字段或字段无效：simSessionList")
    online = [session for session in sessions if _is_online(session)]
    if not online:
        return SessionAnswer(iccid=card.iccid, online=False, ip=None, since=None, at=now)
    return SessionAnswer(
        iccid=card.iccid, online=True, ip=_address(online[0]), since=_since(online[0], now), at=now
    )


def token_of(item: Fields) -> Token:
    """Read a token; its remaining seconds, ``ttl``, may be missing or nonsense: then it is the usual hour."""
    value = item.get("token")
    if not isinstance(value, str) or not value or len(value) > _LONGEST_TOKEN or not value.isprintable():
        raise BadResponse("网关响应无效：OneLink 没有给出令牌")
    ttl = str(item.get("ttl", ""))
    seconds = int(ttl) if ttl.isascii() and ttl.isdigit() and len(ttl) <= len(str(_LONGEST_LIFETIME_S)) else 0
    sane = 0 < seconds <= _LONGEST_LIFETIME_S
    return Token(value, timedelta(seconds=seconds) if sane else _USUAL_LIFETIME)


def _is_online(session: Fields) -> bool:
    online = _ONLINE.get(_text(session, "status"))
    if online is None:
        raise BadResponse("网关应答的在线状态无法识别")
    return online


def _address(session: Fields) -> str | None:
    text = _optional(session, "ip")
    try:
        return None if text is None else str(ip_address(text))
    except ValueError as error:
        raise BadResponse("网关应答的 IP 地址无效") from error


def _since(session: Fields, now: datetime) -> datetime | None:
    text = _optional(session, "createDate")
    if text is None:
        return None
    try:
        since = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=CARRIER_TIME).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadResponse("网关应答的时间无效：createDate") from error
    if since > now + _CLOCK_TOLERANCE:
        raise BadResponse("网关应答的时间在未来：createDate")
    return since


def _text(item: Fields, key: str) -> str:
    text = _optional(item, key)
    if text is None:
        raise BadResponse(f"网关应答缺少字段或字段无效：{key}")
    return text


def _optional(item: Fields, key: str) -> str | None:
    """Return a text without its margins; the carrier writes blanks for what it does not know."""
    value = item.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise BadResponse(f"网关应答缺少字段或字段无效：{key}")
    return value.strip() or None
