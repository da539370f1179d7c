"""What the process that reads a card file sends to the one that imports it: frames of JSON.

A frame is its length (4 bytes, big-endian) and a JSON value: ``["rows", [...]]``, ``["notes", [...]]``,
``["refused", text]``, ``["failed", where]`` or ``["end"]``. JSON and no pickle: what comes from a process
that read a hostile file is data, never code.
"""

import struct
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import orjson

from junhong_cmp.cards.model import NewCard
from junhong_cmp.imports.judged import Judged
from junhong_cmp.imports.model import RowResult, RowStatus
from junhong_cmp.imports.rows import Candidate

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


def encode_rows(rows: Sequence[Judged]) -> bytes:
    """Return a frame of judged rows."""
    return encode_frame(FrameKind.ROWS, [_encode_row(row) for row in rows])


def decode_frame(body: bytes) -> tuple[FrameKind, Any]:
    """Return a frame's kind and content; ValueError when it is none."""
    kind, content = orjson.loads(body)
    return FrameKind(kind), content


def decode_rows(content: list[list[Any]]) -> list[Judged]:
    """Return the judged rows of a frame of rows."""
    return [_decode_result(*row) if len(row) == _RESULT_CELLS else _decode_candidate(*row) for row in content]


def _encode_row(row: Judged) -> list[Any]:
    last_line, outcome = row
    if isinstance(outcome, RowResult):
        return [
            last_line,
            outcome.line_no,
            outcome.status,
            outcome.value,
            outcome.reason_code,
            outcome.reason,
        ]
    card = outcome.card
    cells = [card.msisdn, card.imsi, card.imei, card.batch_no, card.plan]
    return [last_line, outcome.line_no, card.iccid, *cells, outcome.warnings]


def _decode_result(last_line: int, line: int, status: str, value: str, code: str, reason: str) -> Judged:
    result = RowResult(line_no=line, status=RowStatus(status), value=value, reason_code=code, reason=reason)
    return Judged(last_line, result)


def _decode_candidate(last_line: int, line: int, iccid: str, *cells: Any) -> Judged:
    msisdn, imsi, imei, batch_no, plan, warnings = cells
    card = NewCard(iccid=iccid, msisdn=msisdn, imsi=imsi, imei=imei, batch_no=batch_no, plan=plan)
    return Judged(last_line, Candidate(line, iccid, card, tuple(warnings)))


_RESULT_CELLS: Final = 6
