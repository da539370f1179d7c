"""Data volumes as carriers write them, as whole KB."""

import re
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import Final

from junhong_cmp.gateway.errors import BadResponse

_BYTES_PER_UNIT: Final = {
    "B": 1,
    "KB": 1024,
    "K": 1024,
    "KIB": 1024,
    "MB": 1024**2,
    "M": 1024**2,
    "MIB": 1024**2,
    "GB": 1024**3,
    "G": 1024**3,
    "GIB": 1024**3,
    "TB": 1024**4,
    "T": 1024**4,
    "TIB": 1024**4,
}
_QUANTITY: Final = re.compile(r"([0-9]{1,24}(?:\.[0-9]{1,24})?) ?([A-Za-z]{0,3})", re.ASCII)
_LARGEST_KB: Final = 2**50
"""1 EiB: more than any SIM can move in a cycle, and far inside a 64-bit integer."""
_PRECISION: Final = 80


def whole_kb(value: object, unit: str | None, *, default_unit: str) -> int:
    """Return a volume in KB, rounded down.

    Args:
        value: a number, or text such as ``"12.34MB"`` whose unit must agree with ``unit`` if given.
        unit: the unit the answer names beside the number, if it does.
        default_unit: the account's unit, for an answer that names none.

    Raises:
        BadResponse: not a volume, negative, absurdly large, or in a unit nobody defined.

    """
    number, written_unit = _split(value)
    if unit and written_unit and unit.upper() != written_unit.upper():
        raise BadResponse(f"网关应答的用量单位互相矛盾：{unit[:8]!r} 与 {written_unit!r}")
    name = written_unit or unit or default_unit
    factor = _BYTES_PER_UNIT.get(name.upper())
    if factor is None:
        raise BadResponse(f"网关应答的用量单位无法识别：{name[:8]!r}")
    if not 0 <= number <= _LARGEST_KB * 1024:
        raise BadResponse("网关应答的用量为负数或大得不可能")
    if isinstance(number, int):
        kilobytes = number * factor // 1024
    else:
        with localcontext() as context:
            context.prec = _PRECISION
            kilobytes = int((number * factor / 1024).to_integral_value(rounding=ROUND_FLOOR))
    if kilobytes > _LARGEST_KB:
        raise BadResponse("网关应答的用量为负数或大得不可能")
    return kilobytes


def _split(value: object) -> tuple[int | Decimal, str]:
    """Return number and unit; bool is an int to Python but not to a carrier."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, ""
    if isinstance(value, Decimal):
        return value, ""
    if isinstance(value, str) and (found := _QUANTITY.fullmatch(value.strip())):
        return Decimal(found[1]), found[2]
    raise BadResponse("网关应答的用量不是数字")
