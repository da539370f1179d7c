"""What a process that parses a workbook is asked to do."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final, Self

import orjson

from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.limits import ImportLimits, WorkbookLimits

OUT_OF_MEMORY: Final = 3
"""The exit code by which the process says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookOrder:
    """Which rows of which sheet to read, and within which limits; travels as one command-line argument.

    ``sheet`` is empty for the first with an ICCID header; ``parent`` is the pid without which there is
    nothing to do.
    """

    format: FileFormat
    sheet: str
    from_line: int
    parent: int
    limits: ImportLimits
    workbook_limits: WorkbookLimits

    def encode(self) -> str:
        """Return the order as an argument."""
        return orjson.dumps(asdict(self), default=_seconds).decode()

    @classmethod
    def decode(cls, argument: str) -> Self:
        """Return the order that :meth:`encode` wrote."""
        fields: dict[str, Any] = orjson.loads(argument)
        workbook_limits = fields["workbook_limits"]
        for name in ("cpu", "silence"):
            workbook_limits[name] = timedelta(seconds=workbook_limits[name])
        return cls(
            format=FileFormat(fields["format"]),
            sheet=fields["sheet"],
            from_line=fields["from_line"],
            parent=fields["parent"],
            limits=ImportLimits(**fields["limits"]),
            workbook_limits=WorkbookLimits(**workbook_limits),
        )


def _seconds(value: object) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError
