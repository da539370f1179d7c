"""Cells of workbooks: their text, and numbers as far as a spreadsheet kept them."""

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, Overflow
from typing import Final, NamedTuple

from junhong_cmp.imports.sheet_row import CellKind

_EXACT_DIGITS: Final = 15
_EXCEL: Final = Context(prec=_EXACT_DIGITS, rounding=ROUND_HALF_EVEN, Emax=400, Emin=-400)
"""Spreadsheets have nothing beyond 1E±308, and a number written out in full has as many digits."""
_LONGEST_NUMBER: Final = 40
_ESCAPE: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")


class RawRow(NamedTuple):
    """One row of a sheet: its number, its cells by column (from 0), and the kinds of those not text."""

    number: int
    cells: Mapping[int, str]
    kinds: Mapping[int, CellKind]
    widest: int = -1
    """The last column with content, also when it is beyond the columns that are kept."""


def exact_number(text: str) -> str | None:
    """Return a number cell as a spreadsheet shows it in full, or None if it has lost digits.

    Spreadsheets keep 15 significant digits; what is stored of 29.9 is ``29.899999999999999``.
    """
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        number = _EXCEL.create_decimal(text)
    except (InvalidOperation, Overflow):
        return None
    if not number.is_finite() or abs(number) >= Decimal(10) ** _EXACT_DIGITS:
        return None
    shown = format(number, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def unescape(text: str) -> str:
    """Undo ``_xHHHH_``, by which workbooks write the characters that XML can't."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda match: _character(int(match[1], 16)), text)


def _character(code: int) -> str:
    lone_surrogate = 0xD800 <= code <= 0xDFFF  # noqa: PLR2004 - Unicode's range
    return "\ufffd" if lone_surrogate else chr(code)
