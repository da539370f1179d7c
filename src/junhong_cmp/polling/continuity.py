"""What the key ``polling:continuity`` says: whether Redis still knows all it was told about polls."""

from typing import Final, NamedTuple

BROKEN: Final = "broken"
_KEPT: Final = "kept"
_LEFT: Final = "left"


class Continuity(NamedTuple):
    """A continuity is the word of the last leader that looked, about the server it looked at.

    ``left_at_ms`` is set by one that left in order: nothing was claimed after this instant, and the word was
    written after all else. A single server that still has it has therefore lost none of its claims.
    """

    server: str
    left_at_ms: int | None = None

    def encode(self) -> str:
        """Return the value of the key."""
        if self.left_at_ms is None:
            return f"{_KEPT}:{self.server}"
        return f"{_LEFT}:{self.server}:{self.left_at_ms}"

    @classmethod
    def decode(cls, value: bytes) -> "Continuity | None":
        """Read the value of the key; None when it is broken, or nothing known."""
        match value.decode(errors="replace").split(":"):
            case [word, server] if word == _KEPT:
                return cls(server)
            case [word, server, at] if word == _LEFT and at.isdecimal() and at.isascii():
                return cls(server, int(at))
        return None
