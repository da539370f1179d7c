"""Rows and strings of a workbook as nearly all are written, found by their pattern instead of tag by tag.

A parser of XML calls back at the start and the end of each tag, some forty times a row, and these calls are
most of what reading a workbook costs. A row or a string is plain when it has nothing but what spreadsheet
programs write for texts and numbers: no formula, no formatted text, nothing escaped, no blanks between tags.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

ROW_END: Final = b"</row>"
STRING_END: Final = b"</si>"
_BITE_BYTES: Final = 8 * 1024
"""A few dozen rows: a bite is read in one go, and others may have to wait for the processor so long."""

_TEXT: Final = r"[^<>&\x00-\x1f]*+"
_CELL: Final = (
    r'<c r="[A-Z]{1,3}[0-9]{1,7}"(?: s="[0-9]{1,5}")?+(?: t="[A-Za-z]{1,9}")?+'
    rf"(?:/>|>(?:<is><t>{_TEXT}</t></is>|<v>{_TEXT}</v>)</c>)"
)
_ROWS: Final = re.compile(rf'(?:<row r="[0-9]{{1,7}}"[^<>&/]*+>(?:{_CELL})*+</row>)++')
_PARTS: Final = re.compile(
    r'<c r="([A-Z]+)[0-9]+"(?: s="([0-9]+)")?(?: t="([A-Za-z]+)")?(?:/|>(?:<is><t>|<v>)([^<]*))'
    r'|<row r="([0-9]+)|</row>'
)
_STRINGS: Final = re.compile(rf'(?:<si><t(?: xml:space="preserve")?+>{_TEXT}</t></si>)++')
_STRING: Final = re.compile("<t[^>]*>([^<]*)")

PlainPart = tuple[str, str, str, str, str]
"""A cell: its column, style, type and text. Or the start of a row: its number, last. Or the end of a row.

What a part does not have is empty.
"""


def cut_behind(end: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the pieces of a part anew, into bites that end with the tag ``end`` where there are any."""
    held = b""
    for piece in pieces:
        for start in range(0, len(piece), _BITE_BYTES):
            held += piece[start : start + _BITE_BYTES]
            last = held.rfind(end)
            if last >= 0:
                yield held[: last + len(end)]
                held = held[last + len(end) :]
            elif len(held) > _BITE_BYTES:
                yield held
                held = b""
    if held:
        yield held


def find_plain_rows(bite: bytes) -> list[PlainPart] | None:
    """Return the parts of plain rows in UTF-8, or None if there is anything else in ``bite``."""
    text = _decode(bite)
    return _PARTS.findall(text) if _ROWS.fullmatch(text) else None


def find_plain_strings(bite: bytes) -> list[str] | None:
    """Return the texts of plain shared strings in UTF-8, or None if there is anything else in ``bite``."""
    text = _decode(bite)
    return _STRING.findall(text) if _STRINGS.fullmatch(text) else None


def _decode(bite: bytes) -> str:
    """Return the text, or none: it matches nothing, and the parser of XML will say what is wrong with it."""
    try:
        return bite.decode()
    except UnicodeDecodeError:
        return ""
