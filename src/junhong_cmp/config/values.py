"""How texts become values: durations, queue weights, lists, URLs. Errors are Chinese predicates."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BeforeValidator, SecretStr

_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_PLAIN_SECONDS: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,64}")
_WEIGHT: Final = re.compile(r"[1-9]\d{0,5}", re.ASCII)  # heartbeats carry weights as 32-bit numbers
_MAX_PORT: Final = 65_535
_BAD_PORT: Final = f"中的端口无效，须为 0 到 {_MAX_PORT} 的整数"
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def parse_duration(value: Any) -> Any:
    """Turn ``8``, ``"8s"``, ``"500ms"`` or ``"1h30m"`` into a timedelta; a bare number is seconds."""
    if isinstance(value, timedelta):
        return value
    text = str(value)
    try:
        if not isinstance(value, bool) and _PLAIN_SECONDS.fullmatch(text):
            return timedelta(seconds=float(text))
        if _DURATION.fullmatch(text):
            parts = _DURATION_PART.findall(text)
            return timedelta(seconds=sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts))
    except OverflowError:
        raise ValueError("超出可表示的时长范围") from None
    raise ValueError("不是时长，写法如 8s、500ms、1h30m，不带单位时按秒计")


def format_duration(value: timedelta) -> str:
    """Write a duration the way :func:`parse_duration` reads it."""
    milliseconds = round(value.total_seconds() * 1000)
    if milliseconds % 1000:
        return f"{milliseconds}ms"
    seconds = milliseconds // 1000
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def parse_weights(value: Any) -> Any:
    """Turn ``"polling=6,import=2"`` (or a mapping) into queue weights."""
    if isinstance(value, Mapping):
        pairs = [(str(name), str(weight)) for name, weight in value.items()]
    else:
        pairs = [
            (name, weight) for name, _, weight in (item.partition("=") for item in str(value).split(","))
        ]
    weights: dict[str, int] = {}
    for raw_name, raw_weight in pairs:
        name, weight = raw_name.strip(), raw_weight.strip()
        if not _QUEUE_NAME.fullmatch(name) or not _WEIGHT.fullmatch(weight):
            raise ValueError("写法须如 polling=6,import=2,default=1，权重为正整数，最多 6 位")
        if name in weights:
            raise ValueError(f"中队列 {name} 出现两次")
        weights[name] = int(weight)
    return weights


def parse_list(value: Any) -> Any:
    """Turn ``"a,b"`` (or a sequence) into a tuple of texts."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return value
    return tuple(str(item).strip() for item in items if str(item).strip())


def parse_json(value: Any) -> Any:
    """Turn a JSON text into its value; anything else is taken as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, object_pairs_hook=_without_repeats)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("不是有效的 JSON") from None


def secret_parts(text: str) -> list[str]:
    """Return what must not be shown of a secret: the passwords of a URL, the whole of anything else."""
    if "://" not in text:
        return [text]
    rest = text.partition("://")[2]
    authority = rest.partition("/")[0]
    password = authority.rpartition("@")[0].partition(":")[2]
    query = [value for key, value in parse_qsl(rest.partition("?")[2]) if "pass" in key or "secret" in key]
    return [part for part in {password, unquote(password), *query} if part]


class UrlShape:
    """A URL shape checks, without any network, that a URL could be opened later."""

    def __init__(self, *schemes: str) -> None:
        self.schemes = schemes

    def __call__(self, value: Any) -> Any:
        """Return the value unchanged, or raise what is wrong with it, never showing it."""
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in self.schemes:
            raise ValueError(f"须以 {'、'.join(f'{name}://' for name in self.schemes)} 之一开头")
        if not rest and scheme != "memory":
            raise ValueError("缺少地址")
        self._check_ports(text)
        return value

    @staticmethod
    def _check_ports(text: str) -> None:
        try:
            for host in urlsplit(text).netloc.rpartition("@")[2].split(","):
                urlsplit(f"//{host}").port  # noqa: B018 - reading the property is what checks the port
        except ValueError:
            raise ValueError(_BAD_PORT) from None


def check_postgres_options(dsn: SecretStr) -> SecretStr:
    """Return the connection string unchanged if the options behind its ``?`` can be understood."""
    for name, value in parse_qsl(urlsplit(dsn.get_secret_value()).query):
        if name == "sslmode" and value not in _SSL_MODES:
            raise ValueError(f"中的 sslmode 只能为 {'、'.join(_SSL_MODES)}")
        if name == "port" and not all(_is_port(part) for part in value.split(",")):
            raise ValueError(_BAD_PORT)
    return dsn


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: only one of its values could be the one that is meant."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"中 {name} 出现两次")
        fields[name] = value
    return fields


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _MAX_PORT


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Weights = Annotated[dict[str, int], BeforeValidator(parse_weights)]
TextList = Annotated[tuple[str, ...], BeforeValidator(parse_list)]
