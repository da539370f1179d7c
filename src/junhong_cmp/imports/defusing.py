"""Text that a spreadsheet would take for something else: marked as text, and the mark taken off again."""

import re
import unicodedata
from typing import Final

# What a spreadsheet takes for a formula once blanks are gone (CWE-1236), compared after NFKC: full-width
# and small forms count too.
_FORMULA_STARTS: Final = frozenset("=+-@")
_CONTROL_STARTS: Final = ("\t", "\r", "\0")
# What it takes for a number, which it would round to 15 digits, or for a date or a time.
_NUMBER: Final = re.compile(r"[$¥€]?[0-9][0-9.,/:%+\-]*([eE][+-]?[0-9]+)?%?")
# What begins so is neither, whatever comes behind it: most reasons and warnings.
_WORD: Final = re.compile(r"[A-Za-z\u4e00-\u9fff]")
_MARK: Final = "'"
_FORMULA_TEXT: Final = re.compile(r'="((?:[^"]|"")*)"')


def as_cell(text: str) -> str:
    """Return ``text`` quoted for CSV (RFC 4180); formulas and numbers get a ``'`` so that they stay text."""
    if text.isdecimal() and text.isascii():  # most cells: an ICCID
        return f'"{_MARK}{text}"'
    if _is_more_than_text(text):
        text = _MARK + text
    return '"' + text.replace('"', '""') + '"'


def unmarked(text: str) -> str:
    """Return a text without what marks it as one: the ``'`` of :func:`as_cell`, or ``="…"``.

    Any other ``'`` at the start is the text's own.
    """
    if text.startswith("=") and (formula := _FORMULA_TEXT.fullmatch(text)):
        return formula[1].replace('""', '"')
    if text.startswith(_MARK) and _is_more_than_text(text[1:]):
        return text[1:]
    return text


def _is_more_than_text(text: str) -> bool:
    if not text or _WORD.match(text):
        return False
    if text.isascii() and text.isalnum():
        return _NUMBER.fullmatch(text) is not None
    if text.startswith(_CONTROL_STARTS):
        return True
    seen = "".join(unicodedata.normalize("NFKC", text).split())
    start = next((char for char in seen if char.isprintable()), "")
    return start in _FORMULA_STARTS or _NUMBER.fullmatch(seen) is not None
