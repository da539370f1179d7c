"""ICCIDs as spreadsheets have them: cleaned, checked, and never guessed.

Hard rules refuse a value; hints (check digit, prefix, a tail of zeros) only warn, because
about half of all genuine cards fail the Luhn check and prefixes are reused.
"""

import re
import unicodedata
from enum import StrEnum
from typing import Final, NamedTuple

from junhong_cmp.cards.carrier import CARRIER_NAMES, Carrier, carrier_hint
from junhong_cmp.errors import JunhongError


class IccidProblem(StrEnum):
    """Why a value is refused as an ICCID; the values are stored with import rows."""

    EMPTY = "iccid_empty"
    NUMERIC_CELL = "iccid_numeric_cell"
    SCIENTIFIC = "iccid_scientific"
    DECIMAL = "iccid_decimal"
    ALPHABET = "iccid_alphabet"
    LENGTH = "iccid_length"


class IccidError(JunhongError):
    """The value is not an ICCID: ``code`` for programs, ``text`` for the person with the file."""

    def __init__(self, code: IccidProblem, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)


class Iccid(NamedTuple):
    """A checked number: 19 or 20 characters of ``[0-9A-F]``; ``warnings`` are Chinese sentences."""

    value: str
    warnings: tuple[str, ...] = ()

    @property
    def iccid19(self) -> str:
        """The part the 19- and the 20-character form of a number have in common."""
        return self.value[:_SHORT]


NUMERIC_CELL_TEXT: Final = "单元格是数值，超过 15 位的数字已失真；请把 ICCID 列设为文本格式后重新填写"

_SHORT: Final = 19
_LONG: Final = 20
_SIGNIFICANT_DIGITS: Final = 15
"""Digits a spreadsheet keeps of a number; it turns the rest into zeros."""

_INVISIBLE: Final = re.compile(r"[\s\u200b-\u200d\u2060\ufeff]+")
_FORMULA_TEXT: Final = re.compile(r'="(.*)"', re.DOTALL)
_SCIENTIFIC: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?E[+-][0-9]+|[+-]?[0-9]+\.[0-9]*E[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]*\.[0-9]*")
_ICCID: Final = re.compile(r"[0-9A-F]+")
_PLAIN: Final = re.compile(r"[0-9]{19,20}")
_DOUBLED: Final = bytes(
    sum(divmod(2 * (character - ord("0")), 10)) if chr(character) in "0123456789" else 0
    for character in range(256)
)
"""By the character of a digit, the digit sum of its double."""


def clean_cell(raw: str) -> str:
    """Undo what spreadsheets do to an identifier: full-width forms, spaces, ``'``, ``="…"``."""
    if raw.isascii() and raw.isalnum():  # nearly every cell there is; nothing below would change it
        return raw.upper()
    text = "".join(raw.split()) if raw.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", raw))
    if formula := _FORMULA_TEXT.fullmatch(text):
        text = formula[1]
    return text.removeprefix("'").upper()


def normalise(raw: str | float | None, *, carrier: Carrier | None = None) -> Iccid:
    """Return the number in its one canonical form, with warnings against ``carrier`` if given.

    Raises:
        IccidError: with the reason; numbers (not text) are refused whatever they look like,
            since a spreadsheet keeps 15 digits of them.

    """
    if isinstance(raw, (int, float)):
        raise IccidError(IccidProblem.NUMERIC_CELL, NUMERIC_CELL_TEXT)
    if raw and _PLAIN.fullmatch(raw):  # nearly every cell there is: nothing to clean, nothing to refuse
        return Iccid(raw, tuple(_warnings(raw, carrier, digits_only=True)))
    value = _canonical(raw or "")
    return Iccid(value, tuple(_warnings(value, carrier, digits_only=value.isdigit())))


def is_same_card(one: str, other: str) -> bool:
    """Whether two canonical numbers name one card: the 19-character form lacks the last digit."""
    if len(one) == len(other):
        return one == other
    return one[:_SHORT] == other[:_SHORT]


def _canonical(raw: str) -> str:
    value = clean_cell(raw)
    if _ICCID.fullmatch(value) is None:
        raise _refusal(value)
    if len(value) == _LONG:
        value = value.removesuffix("F")  # padding of a 19-digit number, in BCD on the card
    if len(value) not in (_SHORT, _LONG):
        raise IccidError(IccidProblem.LENGTH, f"ICCID 应为 19 或 20 位，实际为 {len(value)} 位")
    return value


def _refusal(value: str) -> IccidError:
    if not value:
        return IccidError(IccidProblem.EMPTY, "ICCID 为空")
    if _SCIENTIFIC.fullmatch(value):
        return IccidError(
            IccidProblem.SCIENTIFIC, "ICCID 是科学计数法，原始数字已丢失；请把该列设为文本格式后重新填写"
        )
    if _DECIMAL.fullmatch(value):
        return IccidError(
            IccidProblem.DECIMAL, "ICCID 带小数点，说明曾被当作数值；请把该列设为文本格式后重新填写"
        )
    return IccidError(IccidProblem.ALPHABET, "ICCID 含有 0-9、A-F 以外的字符")


def _warnings(value: str, carrier: Carrier | None, *, digits_only: bool) -> list[str]:
    warnings: list[str] = []
    if digits_only and not _passes_luhn(value):
        warnings.append("Luhn 校验未通过")
    hint = carrier_hint(value)
    if hint is not None and hint != carrier and carrier not in (None, Carrier.OTHER):
        warnings.append(f"号段 {value[:6]} 通常属于{CARRIER_NAMES[hint]}")
    if not value[_SIGNIFICANT_DIGITS:].strip("0"):
        warnings.append("末尾连续为零，可能在表格中丢失了精度")
    return warnings


def _passes_luhn(digits: str) -> bool:
    text = digits.encode("ascii")
    single, doubled = text[::-2], text[-2::-2].translate(_DOUBLED)
    return (sum(single) - ord("0") * len(single) + sum(doubled)) % 10 == 0
