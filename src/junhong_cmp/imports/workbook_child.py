"""The process that parses one workbook: ``python -P -m junhong_cmp.imports.workbook_child ORDER``.

Its standard input is the file, its standard output the frames of ``workbook_frames``. It knows no secret,
opens nothing, and limits itself before it looks at a single byte, so a hostile workbook can cost no more than
this process.
"""

import ctypes
import os
import resource
import signal
import sys
import traceback
from itertools import islice
from pathlib import Path
from typing import IO, Final

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.notes import column_notes, sheet_notes
from junhong_cmp.imports.workbook import CardSheet, open_workbook
from junhong_cmp.imports.workbook_frames import FrameKind, encode_frame, encode_rows
from junhong_cmp.imports.workbook_order import OUT_OF_MEMORY, WorkbookOrder

_ROWS_A_FRAME: Final = 500
_PARENT_DEATH_SIGNAL: Final = 1


def main(argument: str) -> int:
    """Read the workbook as ordered; returns the exit code."""
    order = WorkbookOrder.decode(argument)
    confine(order)
    with os.fdopen(0, "rb", closefd=False) as file, os.fdopen(1, "wb", closefd=False) as out:
        try:
            _send_rows(file, out, order)
        except FileRefusedError as error:
            out.write(encode_frame(FrameKind.REFUSED, str(error)))
        except MemoryError:
            return OUT_OF_MEMORY
        except Exception as error:  # noqa: BLE001 - a fault of ours: the parent logs its place
            out.write(encode_frame(FrameKind.FAILED, _place_of(error)))
    return 0


def confine(order: WorkbookOrder) -> None:
    """Die with the parent, and never use more memory or time than allowed, nor write a file."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != order.parent:
            raise SystemExit(1)
    cpu = max(1, int(order.workbook_limits.cpu.total_seconds()))
    memory = order.workbook_limits.address_space
    limits = {
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_CPU: (cpu, cpu + 1),  # the first tells the parent why, the second can't be ignored
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
    }
    for kind, pair in limits.items():
        _, most = resource.getrlimit(kind)
        soft, hard = (one if most == resource.RLIM_INFINITY else min(one, most) for one in pair)
        resource.setrlimit(kind, (soft, hard))


def _send_rows(file: IO[bytes], out: IO[bytes], order: WorkbookOrder) -> None:
    workbook = open_workbook(file, order.format, order.limits, order.workbook_limits)
    sheet = CardSheet(workbook, order.sheet, order.limits)
    out.write(encode_frame(FrameKind.NOTES, _notes_of(sheet)))
    rows = (row for row in sheet.rows() if row.line >= order.from_line)
    while batch := list(islice(rows, _ROWS_A_FRAME)):
        out.write(encode_rows(batch))
        out.flush()
    out.write(encode_frame(FrameKind.END))


def _place_of(error: Exception) -> str:
    """Return the kind and the place of a fault; its message might quote the file."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {Path(frame.filename).name}:{frame.lineno}"


def _notes_of(sheet: CardSheet) -> list[str]:
    return [*sheet_notes(sheet.name, sheet.other_sheets), *column_notes(sheet.ignored_columns)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
