"""How large an import file and its parts may be; what is beyond is refused, never loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """Caps of one import file; sizes of text count characters."""

    file_bytes: int = 2 * 1024**3
    lines: int = 2_000_000
    line_chars: int = 64 * 1024
    record_lines: int = 32
    columns: int = 256
    cell_chars: int = 1024
    preamble_lines: int = 40
    """More than ``record_lines``, so that a stray quote above the header can't hide it."""
