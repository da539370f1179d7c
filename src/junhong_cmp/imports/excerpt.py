"""How a piece of a hostile file may be stored and shown."""

import re
from typing import Final

_SHOWN_CHARS: Final = 64
_LONG_NUMBER: Final = re.compile(r"[\dA-Fa-f](?:[ -]?[\dA-Fa-f]){10,}")
_DIGITS_LEFT: Final = 4


def show(raw: str) -> str:
    """Return ``raw`` as it may be stored and shown: short, on one line, nothing invisible.

    PostgreSQL keeps no NUL, and control, format and separator characters can forge what a person reads.
    """
    text = raw.strip()
    cut = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in cut)


def without_numbers(text: str) -> str:
    """Return ``text`` with all but the end of each card's or person's number left out.

    A file without a header has rows where its names should be, and what is said about them goes into logs.
    """
    return _LONG_NUMBER.sub(lambda number: f"…{number[0][-_DIGITS_LEFT:]}", text)
