"""The code tables of China Unicom's platform: states of cards, and refusals → what the caller does."""

from collections.abc import Mapping
from typing import Final

from junhong_cmp.gateway.errors import (
    AlreadyDone,
    AuthRejected,
    BadRequest,
    CardUnknown,
    GatewayError,
    Maintenance,
    QuotaExhausted,
    Throttled,
    Transient,
)
from junhong_cmp.gateway.json_body import excerpt

OK: Final = "0000"
ACTIVATED: Final = "2"
DEACTIVATED: Final = "3"

SIM_STATUSES: Final[Mapping[str, tuple[str, str]]] = {
    "0": ("可测试", "testing"),
    "1": ("可激活", "ready"),
    ACTIVATED: ("已激活", "active"),
    DEACTIVATED: ("已停用", "suspended"),
    "4": ("已失效", "pre_cancelled"),
    "5": ("已清除", "cancelled"),
    "6": ("已更换", "cancelled"),
    "7": ("库存", "inventory"),
    "8": ("开始", "inventory"),
    "9": ("预清除", "pre_cancelled"),
}
"""``simStatus``: the platform's word and ours."""

REALNAME_STATUSES: Final[Mapping[str, str]] = {
    "0": "not_required",
    "1": "unverified",
    "2": "verified",
    "3": "verified",  # not required, and registered all the same
}
"""``realNameStatus`` in our words."""

_CARD_WORDS: Final = ("iccid", "卡", "设备", "终端", "terminal")
_UNKNOWN_WORDS: Final = ("不存在", "未找到", "无效", "invalid", "not found")
_DONE_WORDS: Final = ("已是", "已处于", "状态相同", "无需")
_WORDS: Final[tuple[tuple[type[GatewayError], tuple[str, ...]], ...]] = (
    (QuotaExhausted, ("日调用", "月调用", "配额", "当日")),
    (Throttled, ("频", "限流", "超限", "rate limit")),
    (Maintenance, ("维护", "升级", "割接")),
    (
        AuthRejected,
        ("token", "签名", "鉴权", "认证", "权限", "授权", "app_id", "openid", "时间戳"),
    ),
    (BadRequest, ("参数", "格式", "非法", "不能为空", "不支持")),
)


def refusal_of(code: str, message: str, *, changing: bool) -> GatewayError:
    """Name a refusal.

    The platform publishes one code, that of success; what else it says, it says in words. Those about one
    card count only if they speak of a card: an interface that "does not exist" is no orphan.
    """
    said = f"联通平台拒绝（{excerpt(code.encode())}）：{excerpt(message.encode())}"
    text = message.lower()
    if changing and _speaks(text, _DONE_WORDS):
        return AlreadyDone(said)
    for kind, words in _WORDS[:-1]:
        if _speaks(text, words):
            return kind(said)
    if _speaks(text, _CARD_WORDS) and _speaks(text, _UNKNOWN_WORDS):
        return CardUnknown(said)
    kind, words = _WORDS[-1]
    return kind(said) if _speaks(text, words) else Transient(said)


def _speaks(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)
