"""How a piece of a hostile file may be stored and shown."""

from typing import Final

_SHOWN_CHARS: Final = 64


def show(raw: str) -> str:
    """Return ``raw`` as it may be stored and shown: short, on one line, nothing invisible.

    PostgreSQL keeps no NUL, and control, format and separator characters can forge what a person reads.
    """
    text = raw.strip()
    cut = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in cut)
