"""The carriers, and what a card's number hints about its carrier."""

from enum import StrEnum
from typing import Final


class Carrier(StrEnum):
    """A mobile carrier as accounts name it."""

    CMCC = "cmcc"
    CUCC = "cucc"
    CTCC = "ctcc"
    CBN = "cbn"
    OTHER = "other"


CARRIER_NAMES: Final = {
    Carrier.CMCC: "中国移动",
    Carrier.CUCC: "中国联通",
    Carrier.CTCC: "中国电信",
    Carrier.CBN: "中国广电",
    Carrier.OTHER: "其他",
}

_CARRIER_BY_PREFIX: Final = {
    "898600": Carrier.CMCC,
    "898602": Carrier.CMCC,
    "898604": Carrier.CMCC,
    "898607": Carrier.CMCC,
    "898608": Carrier.CMCC,
    "898601": Carrier.CUCC,
    "898606": Carrier.CUCC,
    "898609": Carrier.CUCC,
    "898603": Carrier.CTCC,
    "898611": Carrier.CTCC,
    "898615": Carrier.CBN,
}
_PREFIX_LENGTH: Final = 6


def carrier_hint(iccid: str) -> Carrier | None:
    """Return the carrier an ICCID's prefix is usually given to, or None for an unlisted prefix."""
    return _CARRIER_BY_PREFIX.get(iccid[:_PREFIX_LENGTH])
