"""Fields of an answer of China Telecom's platform, each of the kind it should be."""

from collections.abc import Mapping
from typing import Final

from junhong_cmp.gateway.drivers.ctcc_body import Fields
from junhong_cmp.gateway.errors import BadResponse

_LONGEST_TEXT: Final = 128


def object_of(fields: Fields, name: str) -> Fields:
    """Return an object within an answer."""
    return an_object(fields.get(name))


def text_of(fields: Mapping[str, object], name: str, *, may_be_empty: bool = False) -> str:
    """Return a short, printable text or whole number of an answer; a missing one may count as empty."""
    value = fields.get(name)
    if value is None and may_be_empty:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    fits = isinstance(value, str) and len(value) <= _LONGEST_TEXT and value.isprintable()
    if not isinstance(value, str) or not fits or not (value or may_be_empty):
        raise BadResponse(f"网关应答缺少字段或字段无效：{name}")
    return value


def an_object(value: object) -> Fields:
    """Return a part of an answer that should be an object."""
    if not isinstance(value, dict):
        raise BadResponse("网关应答的结构不符")
    return value
