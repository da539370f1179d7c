"""The process that reads one card file: ``python -P -m junhong_cmp.imports.parser_child ORDER``.

Its standard input is the file, its standard output the frames of ``parser_frames``. It knows no secret,
opens nothing, and limits itself before it looks at a single byte, so a hostile file can cost no more than
this process. It gives way to others: an import is never urgent.
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, Final

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.notes import column_notes, sheet_notes
from junhong_cmp.imports.parser_frames import FrameKind, encode_frame, encode_rows
from junhong_cmp.imports.parser_order import OUT_OF_MEMORY, ParserOrder
from junhong_cmp.imports.reader import CardFileReader
from junhong_cmp.imports.rows import check_row
from junhong_cmp.imports.sheet_row import SheetRow
from junhong_cmp.imports.workbook import CardSheet, open_workbook

_ROWS_A_FRAME: Final = 50
"""So many are read, and decoded in the parent's event loop, in a fraction of a millisecond."""
_ON_THE_WAY: Final = 4096
"""Bytes, the least a pipe can be told."""
_BREATH_S: Final = 1e-6
"""Sleeping between frames, however shortly, gives the processor to whoever waits for it; yielding it would
give it only to processes of this session, and there are none."""
_PARENT_DEATH_SIGNAL: Final = 1
_PIECE_BYTES: Final = 16 * 1024
_NICENESS: Final = 5
_AUTOGROUP: Final = Path("/proc/self/autogroup")


def main(argument: str) -> int:
    """Read the workbook as ordered; returns the exit code."""
    order = ParserOrder.decode(argument)
    confine(order)
    keep_pace(1)
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


def confine(order: ParserOrder) -> None:
    """Die with the parent, and never use more memory or time than allowed, nor write a file."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != order.parent:
            raise SystemExit(1)
    _give_way()
    cpu = max(1, int(order.cpu.total_seconds()))
    memory = order.parser_limits.address_space
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


def keep_pace(out: int) -> None:
    """Let little lie on the way to the reader, so that this process works only as far as it is waited for.

    Running ahead, it would take the second processor from others while the first one writes what it read.
    """
    if stat.S_ISSOCK(os.fstat(out).st_mode):  # uvloop talks to its children by socket pairs
        with socket.socket(fileno=os.dup(out)) as duplicate:
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ON_THE_WAY)
    elif hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, _ON_THE_WAY)


def _give_way() -> None:
    os.nice(_NICENESS)
    if os.getsid(0) == os.getpid():
        # Linux may share the processors among sessions first: alone in one, a process would get as much as
        # the worker with all its threads, however nice it is to others of its session.
        with suppress(OSError):
            _AUTOGROUP.write_text(str(_NICENESS), encoding="ascii")


def _send_rows(file: BinaryIO, out: IO[bytes], order: ParserOrder) -> None:
    if order.format is FileFormat.TEXT:
        _send_text(file, out, order)
    else:
        _send_workbook(file, out, order)
    out.write(encode_frame(FrameKind.END))


def _send_text(file: BinaryIO, out: IO[bytes], order: ParserOrder) -> None:
    """Read what comes through the pipe, piece by piece."""
    reader = CardFileReader(order.encoding, order.limits)
    rows = reader.rows(iter(lambda: os.read(file.fileno(), _PIECE_BYTES), b""))
    noted = False
    while batch := list(islice(rows, _ROWS_A_FRAME)):
        if not noted:
            out.write(encode_frame(FrameKind.NOTES, column_notes(reader.ignored_columns)))
            noted = True
        _send(out, order, batch)


def _send_workbook(file: BinaryIO, out: IO[bytes], order: ParserOrder) -> None:
    workbook = open_workbook(file, order.format, order.limits, order.workbook_limits)
    sheet = CardSheet(workbook, order.sheet, order.limits)
    notes = [*sheet_notes(sheet.name, sheet.other_sheets), *column_notes(sheet.ignored_columns)]
    out.write(encode_frame(FrameKind.NOTES, notes))
    rows = (row for row in sheet.rows() if row.line >= order.from_line)
    while batch := list(islice(rows, _ROWS_A_FRAME)):
        _send(out, order, batch)


def _send(out: IO[bytes], order: ParserOrder, rows: Sequence[SheetRow]) -> None:
    judged = [
        Judged(row.last_line, check_row(row, order.account)) for row in rows if row.line >= order.from_line
    ]
    if judged:
        out.write(encode_rows(judged))
        out.flush()
    time.sleep(_BREATH_S)


def _place_of(error: Exception) -> str:
    """Return the kind and the place of a fault; its message might quote the file."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {Path(frame.filename).name}:{frame.lineno}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
