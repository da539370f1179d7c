"""How large an import file and its parts may be; what is beyond is refused, never loaded."""

from dataclasses import dataclass
from datetime import timedelta


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookLimits:
    """Caps of one workbook, beside those of every import file.

    A workbook of 200 000 rows and five columns inflates to 54 MB and takes the process 70 MB and some 3 s.
    """

    file_bytes: int = 100 * 1024**2
    entries: int = 1_000
    inflated_bytes: int = 200 * 1024**2
    ratio: int = 100
    ratio_from_bytes: int = 4 * 1024**2
    """Small parts of blanks shrink more than a hundredfold in honest workbooks."""
    part_bytes: int = 4 * 1024**2
    """Of the parts that are held whole: the list of sheets and its relations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserLimits:
    """Caps of the process that reads a file."""

    address_space: int = 768 * 1024**2
    cpu: timedelta = timedelta(seconds=120)
    cpu_a_mebibyte: timedelta = timedelta(seconds=1)
    """Added for the size of the file: text is read and judged at some 2 MiB a second."""
    silence: timedelta = timedelta(seconds=60)
    """How long a workbook's reader may be still: no rows, no processor used. It may last twice as long."""

    def cpu_for(self, size: int) -> timedelta:
        """Return the processor time for a file of ``size`` bytes."""
        return self.cpu + self.cpu_a_mebibyte * (size // 1024**2)
