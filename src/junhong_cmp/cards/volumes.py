"""Volumes of data as people read them, wherever they are told."""

from typing import Final

_UNIT: Final = 1024


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
