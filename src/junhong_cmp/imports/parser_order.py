"""What a process that reads a card file is asked to do."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final, Self

import orjson

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.imports.formats import FileFormat
from junhong_cmp.imports.limits import ImportLimits, ParserLimits, WorkbookLimits

OUT_OF_MEMORY: Final = 3
"""The exit code by which the process says so."""


@dataclass(frozen=True, slots=True)
class ParserAccount:
    """What the row rules need of the account that the cards are for."""

    carrier: Carrier
    code: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserOrder:
    """Which file to read, for which account, and within which limits; travels as a command-line argument.

    ``encoding`` is that of a text, ``sheet`` that of a workbook, empty for the first with an ICCID header.
    ``cpu`` is the processor time; without ``parent``, a pid, there is nothing to do.
    """

    format: FileFormat
    encoding: str
    sheet: str
    from_line: int
    account: ParserAccount
    parent: int
    cpu: timedelta
    limits: ImportLimits
    workbook_limits: WorkbookLimits
    parser_limits: ParserLimits

    def encode(self) -> str:
        """Return the order as an argument."""
        return orjson.dumps(asdict(self), default=_seconds).decode()

    @classmethod
    def decode(cls, argument: str) -> Self:
        """Return the order that :meth:`encode` wrote."""
        fields: dict[str, Any] = orjson.loads(argument)
        account, parser_limits = fields["account"], fields["parser_limits"]
        for name in ("cpu", "cpu_a_mebibyte", "silence"):
            parser_limits[name] = timedelta(seconds=parser_limits[name])
        converted = {
            "format": FileFormat(fields["format"]),
            "account": ParserAccount(Carrier(account["carrier"]), account["code"], account["name"]),
            "cpu": timedelta(seconds=fields["cpu"]),
            "limits": ImportLimits(**fields["limits"]),
            "workbook_limits": WorkbookLimits(**fields["workbook_limits"]),
            "parser_limits": ParserLimits(**parser_limits),
        }
        return cls(**(fields | converted))


def _seconds(value: object) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError
