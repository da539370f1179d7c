"""What OneLink calls the states of a card, in our words.

Two platforms answer through one interface: the newer one (CT) with one digit, the older one
(PB) with two. ``2`` is a running card and ``02`` a stopped one, so codes are compared as text.
"""

from collections.abc import Mapping
from typing import Final

NO_SUCH_NUMBER: Final = "99"
"""The older platform's way to say that it does not have the card."""

UNKNOWN: Final = "unknown"

CARD_STATUSES: Final[Mapping[str, str]] = {
    "1": "ready",  # 待激活
    "2": "active",  # 已激活
    "4": "suspended",  # 停机
    "6": "testing",  # 可测试
    "7": "inventory",  # 库存
    "8": "pre_cancelled",  # 预销户
    "9": "cancelled",  # 已销户
    "00": "active",  # 正常
    "01": "suspended",  # 单向停机
    "02": "suspended",  # 停机
    "03": "pre_cancelled",  # 预销号
    "04": "cancelled",  # 销号
    "05": UNKNOWN,  # 过户: handed to another customer, which says nothing about its service
    "06": UNKNOWN,  # 休眠: asleep until it is used, which none of our words means
    "07": "ready",  # 待激活
}

REALNAME_STATUSES: Final[Mapping[str, str]] = {
    "0": "unverified",  # 未实名登记
    "1": "verified",  # 已实名登记
}
"""OneLink does not tell whether a card needs registration at all."""
