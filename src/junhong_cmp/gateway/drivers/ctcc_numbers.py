"""Whose answer is it: the numbers China Telecom's platform names cards by."""

import re
from collections.abc import Mapping
from typing import Final

from junhong_cmp.gateway.answers import same_card
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.ctcc_fields import text_of
from junhong_cmp.gateway.errors import BadResponse

_NUMBER: Final = re.compile(r"[0-9]{5,20}")
_ICCID: Final = re.compile(r"[0-9A-F]{19,20}")
_COUNTRY: Final = "86"
_ACCESS_NUMBER_DIGITS: Final = frozenset({11, 13})


def echoed_number(fields: Mapping[str, object], name: str) -> str:
    """Return the number an answer says it is about, an access number without the country's prefix."""
    number = text_of(fields, name)
    if not _ICCID.fullmatch(number.upper()) and not _NUMBER.fullmatch(number):
        raise BadResponse("网关应答的号码不合法")
    return local_number(number)


def local_number(number: str) -> str:
    """Return an access number without the country's prefix; an ICCID as it is."""
    local = number.removeprefix(_COUNTRY)
    return local if len(local) in _ACCESS_NUMBER_DIGITS else number


def is_about(number: str, card: CardRef, msisdn: str | None) -> bool:
    """Tell whether an echoed number is the card's ICCID or its access number."""
    return number == msisdn or same_card(number.upper(), card.iccid.upper())
