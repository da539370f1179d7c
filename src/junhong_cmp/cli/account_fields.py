"""What an operator may say of a carrier account: each key, the values it takes, and how they are shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from yarl import URL

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.gateway.drivers.table import DRIVERS
from junhong_cmp.gateway.endpoints import EndpointPolicy
from junhong_cmp.gateway.errors import GatewayNotConfigured
from junhong_cmp.polling.config import MAX_INTERVAL_S, MAX_QPS, MIN_QPS

NOTHING: Final = "none"
"""Takes a value away where an account may do without."""

_MAX_TEXT: Final = 100
_MAX_URL: Final = 500
_MAX_CALLS: Final = 10**12
_MAX_CONCURRENCY: Final = 10_000
_MAX_BATCH: Final = 10_000
_DAY_S: Final = 86_400
_MAX_LAG_S: Final = 7 * _DAY_S
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_SWITCH: Final[Mapping[str, bool]] = {"true": True, "on": True, "yes": True} | {
    "false": False,
    "off": False,
    "no": False,
}


@dataclass(frozen=True, slots=True)
class AccountField:
    """A key, the attribute of an account behind it, and how its text is read.

    ``read`` raises ValueError for what ``takes`` does not describe. What is refused for a ``private`` one is
    not repeated: it may be a secret in the wrong place.
    """

    key: str
    attribute: str
    takes: str
    read: Callable[[str], object]
    private: bool = False

    def shown(self, account: object) -> str:
        """Return the account's value as it could be typed."""
        return _text(getattr(account, self.attribute))

    def plain(self, account: object) -> Any:
        """Return the account's value as JSON has it, in the unit the key names."""
        value = getattr(account, self.attribute)
        if isinstance(value, timedelta):
            return int(value.total_seconds())
        return float(_text(value)) if isinstance(value, float) else value


def _text(value: object) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "true" if value else "false"
        case timedelta():
            return str(int(value.total_seconds()))
        case float():
            return f"{value:g}"  # PostgreSQL keeps 4 bytes of it: 0.1 comes back as 0.10000000149
    return str(value)


def _switch(text: str) -> bool:
    if (known := _SWITCH.get(text.lower())) is None:
        raise ValueError
    return known


def _whole(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit():  # int() takes signs, blanks and underscores, too
        raise ValueError
    return int(_within(int(text), least, most))


def _seconds(text: str, most: int) -> timedelta:
    return timedelta(seconds=_whole(text, 0, most))


def _number(text: str, least: float, most: float) -> float:
    if not text.isascii() or "_" in text:
        raise ValueError
    return _within(float(text), least, most)


def _within(value: float, least: float, most: float) -> float:
    if not least <= value <= most:  # refuses NaN as well
        raise ValueError
    return value


def _one_of(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError
    return text


def _or_nothing(text: str, read: Callable[[str], object]) -> object:
    return None if text == NOTHING else read(text)


def _line(text: str) -> str:
    if not text.strip() or len(text) > _MAX_TEXT or not text.isprintable():
        raise ValueError
    return text


def _reference(text: str) -> str:
    if any(char.isspace() for char in text):
        raise ValueError
    return _line(text)


def _address(text: str) -> str:
    host = (URL(text).host or "").lower()
    if len(text) > _MAX_URL:
        raise ValueError
    try:  # which hosts and schemes the workers allow, only they know
        EndpointPolicy(allow_http=True, allowed_hosts=[host]).check(text)
    except GatewayNotConfigured as error:
        raise ValueError from error
    return text


def _zone(text: str) -> str:
    if find_zone(text) is None:
        raise ValueError
    return text


def _whole_field(key: str, least: int, most: int) -> AccountField:
    return AccountField(key, key, f"{least} 到 {most} 的整数", partial(_whole, least=least, most=most))


def _choice_field(key: str, known: tuple[str, ...]) -> AccountField:
    return AccountField(key, key, f"{'、'.join(known)} 之一", partial(_one_of, known=known))


def _quota_field(key: str) -> AccountField:
    read = partial(_or_nothing, read=partial(_whole, least=0, most=_MAX_CALLS))
    return AccountField(key, key, f"0 到 {_MAX_CALLS} 的整数，或 {NOTHING}（不限）", read)


def _gap_field(attribute: str, most: int) -> AccountField:
    return AccountField(
        f"{attribute}_s", attribute, f"0 到 {most} 的整数（秒）", partial(_seconds, most=most)
    )


def _switch_field(key: str) -> AccountField:
    return AccountField(key, key, "true 或 false", _switch)


FIELDS: Final[Mapping[str, AccountField]] = {
    each.key: each
    for each in (
        AccountField("name", "name", f"1 到 {_MAX_TEXT} 个字符，不含换行", _line),
        _choice_field("carrier", tuple(carrier.value for carrier in Carrier)),
        _choice_field("driver", tuple(DRIVERS)),
        AccountField(
            "base_url",
            "base_url",
            f"http(s)://主机[:端口][/路径]，不含用户名、密码和参数，且不是链路本地地址；或 {NOTHING}",
            partial(_or_nothing, read=_address),
            private=True,
        ),
        AccountField(
            "credential_ref",
            "credential_ref",
            f"凭据的名称，1 到 {_MAX_TEXT} 个字符，不含空白；或 {NOTHING}",
            partial(_or_nothing, read=_reference),
            private=True,
        ),
        AccountField("tz", "tz", "IANA 时区名，如 Asia/Shanghai", _zone),
        _whole_field("billing_day", 1, 31),
        _choice_field("usage_unit", _UNITS),
        _gap_field("usage_lag", _MAX_LAG_S),
        AccountField(
            "qps", "qps", f"{MIN_QPS} 到 {MAX_QPS} 的数", partial(_number, least=MIN_QPS, most=MAX_QPS)
        ),
        _whole_field("concurrency", 1, _MAX_CONCURRENCY),
        _quota_field("daily_quota"),
        _quota_field("monthly_quota"),
        _choice_field("quota_per", ("call", "card")),
        _gap_field("per_card_min_gap", MAX_INTERVAL_S),
        _gap_field("operation_min_gap", _DAY_S),
        _whole_field("batch_size", 1, _MAX_BATCH),
        _switch_field("polling_enabled"),
        _switch_field("protect_enabled"),
        _switch_field("stop_on_expiry"),
    )
}
