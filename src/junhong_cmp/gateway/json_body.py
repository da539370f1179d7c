"""Bytes from a stranger → a JSON object, or a clear refusal."""

import json
import re
from decimal import Decimal, DecimalException
from typing import Final, NoReturn

from junhong_cmp.gateway.errors import BadResponse

_EXCERPT_CHARS: Final = 200
_EXCERPT_BYTES: Final = 4 * _EXCERPT_CHARS
_BLANKS: Final = re.compile(" {2,}")
_IDENTIFIER: Final = re.compile(r"[0-9A-Fa-f]{7,}(?=[0-9A-Fa-f]{4})")


def excerpt(body: bytes) -> str:
    """Return at most 200 safe characters of a body: one line, all printable, long numbers masked."""
    text = body[:_EXCERPT_BYTES].decode(errors="replace")
    shown = "".join(char if char.isprintable() else " " for char in text)
    return _IDENTIFIER.sub("***", _BLANKS.sub(" ", shown))[:_EXCERPT_CHARS]


def decode_object(body: bytes) -> dict[str, object]:
    """Parse a strict JSON object: UTF-8 without BOM, no repeated keys, no NaN; fractions become Decimal.

    A repeated key is refused because two readers could disagree about whose card an answer is.

    Raises:
        BadResponse: with a short, cleaned excerpt of what came instead.

    """
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except (ValueError, RecursionError, DecimalException) as error:
        raise BadResponse(f"网关响应无效：不是合法的 JSON（{excerpt(body)}）") from error
    if not isinstance(value, dict):
        raise BadResponse(f"网关响应无效：不是 JSON 对象（{excerpt(body)}）")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("repeated key")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=Decimal, parse_constant=_no_constant
)
"""Made once: with these hooks ``json.loads`` would make one each time."""
