"""Rows of a worksheet as nearly all are written, found by their pattern instead of tag by tag.

A parser of XML calls back at the start and the end of each tag, some forty times a row, and these calls are
most of what reading a workbook costs. A row is plain when it has nothing but what spreadsheet programs write
for texts and numbers: no formula, no formatted text, nothing escaped, no blanks between its tags.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

ROW_END: Final = b"</row>"
_BITE_BYTES: Final = 8 * 1024
"""A few dozen rows. A bite is read in one go, and others may have to wait for the processor so long."""

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

PlainPart = tuple[str, str, str, str, str]
"""A cell: its column, style, type and text. Or the start of a row: its number, last. Or the end of a row.

What a part does not have is empty.
"""


def cut_behind_rows(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the pieces of a part anew, into bites that end behind a row where there are rows."""
    held = b""
    for piece in pieces:
        for start in range(0, len(piece), _BITE_BYTES):
            held += piece[start : start + _BITE_BYTES]
            last = held.rfind(ROW_END)
            if last >= 0:
                yield held[: last + len(ROW_END)]
                held = held[last + len(ROW_END) :]
            elif len(held) > _BITE_BYTES:
                yield held
                held = b""
    if held:
        yield held


def find_plain_rows(bite: bytes) -> list[PlainPart] | None:
    """Return the parts of plain rows in UTF-8, or None if there is anything else in ``bite``."""
    try:
        text = bite.decode()
    except UnicodeDecodeError:
        return None
    return _PARTS.findall(text) if _ROWS.fullmatch(text) else None
