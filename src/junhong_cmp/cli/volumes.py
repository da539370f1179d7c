"""Volumes of data as people type them."""

import typer

from junhong_cmp.gateway.errors import BadResponse
from junhong_cmp.gateway.quantities import whole_kb


def parse_volume(text: str) -> int:
    """Return a volume a user gave with its unit, in KB."""
    try:
        kilobytes = whole_kb(text, None, default_unit="")
    except BadResponse as error:
        raise typer.BadParameter("须为带单位的流量，如 500MB、1.5GB，单位 KB、MB、GB、TB") from error
    if kilobytes < 1:
        raise typer.BadParameter("须不小于 1KB")
    return kilobytes
