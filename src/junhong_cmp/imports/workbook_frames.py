"""What the process that parses a workbook sends to the one that imports it: frames of JSON.

A frame is its length (4 bytes, big-endian) and a JSON value: ``["rows", [...]]``, ``["notes", [...]]``,
``["refused", text]``, ``["failed", where]`` or ``["end"]``. JSON and no pickle: what comes from a process
that read a hostile file is data, never code.
"""

import struct
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import orjson

from junhong_cmp.imports.header import Field
from junhong_cmp.imports.sheet_row import CellKind, SheetRow

LENGTH: Final = struct.Struct(">I")
MAX_FRAME_BYTES: Final = 64 * 1024**2


class FrameKind(StrEnum):
    """What a frame carries."""

    ROWS = "rows"
    NOTES = "notes"
    REFUSED = "refused"
    FAILED = "failed"
    END = "end"


def encode_frame(kind: FrameKind, content: object = None) -> bytes:
    """Return a frame with its length before it."""
    body = orjson.dumps([kind, content])
    return LENGTH.pack(len(body)) + body


def encode_rows(rows: Sequence[SheetRow]) -> bytes:
    """Return a frame of rows."""
    return encode_frame(FrameKind.ROWS, [_encode_row(row) for row in rows])


def decode_frame(body: bytes) -> tuple[FrameKind, Any]:
    """Return a frame's kind and content; ValueError when it is none."""
    kind, content = orjson.loads(body)
    return FrameKind(kind), content


def decode_rows(content: list[list[Any]]) -> list[SheetRow]:
    """Return the rows of a frame of rows."""
    return [_decode_row(*row) for row in content]


def _encode_row(row: SheetRow) -> list[Any]:
    """Return a row as a list; what most rows lack is left away at its end."""
    cells = [row.line, *(row.fields.get(field) for field in _FIELDS)]
    if row.kinds is None and row.fault is None and not row.surplus_cells:
        return [cells]
    kinds = None if row.kinds is None else [row.kinds.get(field) for field in _FIELDS]
    return [cells, kinds, row.surplus_cells, row.fault, row.excerpt]


def _decode_row(
    cells: list[Any],
    kinds: list[str | None] | None = None,
    surplus: bool = False,  # noqa: FBT001, FBT002 - as it comes over the pipe
    fault: str | None = None,
    excerpt: str = "",
) -> SheetRow:
    line, *texts = cells
    return SheetRow(
        line,
        line,
        {field: text for field, text in zip(_FIELDS, texts, strict=True) if text is not None},
        surplus,
        fault,
        excerpt,
        None if kinds is None else _decode_kinds(kinds),
    )


def _decode_kinds(kinds: list[str | None]) -> dict[Field, CellKind]:
    return {field: CellKind(kind) for field, kind in zip(_FIELDS, kinds, strict=True) if kind is not None}


_FIELDS: Final = tuple(Field)
