"""Volumes of data as people type and read them."""

from typing import Final

import typer

from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.quantities import whole_kb

_UNIT: Final = 1024


def parse_volume(text: str) -> int:
    """Return a volume a user gave with its unit, in KB."""
    try:
        kilobytes = whole_kb(text, None, default_unit="")
    except BadResponse as error:
        raise typer.BadParameter("须为带单位的流量，如 500MB、1.5GB，单位 KB、MB、GB、TB") from error
    if kilobytes < 1:
        raise typer.BadParameter("须不小于 1KB")
    return kilobytes


def rough_volume(kilobytes: int) -> str:
    """Return a volume that was counted for people, to a tenth of the unit it is best told in."""
    number, unit = float(kilobytes), "KB"
    for larger in ("MB", "GB", "TB"):
        if number < _UNIT:
            break
        number, unit = number / _UNIT, larger
    return f"{kilobytes}KB" if unit == "KB" else f"{number:,.1f}{unit}"


def volume_text(kilobytes: int | None) -> str:
    """Return a volume for people, exactly: in the largest unit of which it is a whole or a half number."""
    if kilobytes is None:
        return "未设"
    halves, unit = kilobytes * 2, "KB"
    for larger in ("MB", "GB", "TB"):
        if halves < 2 * _UNIT or halves % _UNIT:
            break
        halves, unit = halves // _UNIT, larger
    return f"{halves // 2}{'.5' if halves % 2 else ''}{unit}"
