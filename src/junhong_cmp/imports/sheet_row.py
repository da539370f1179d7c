"""One data row of a card file, whatever its format."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from junhong_cmp.imports.header import Field


class CellKind(StrEnum):
    """What a workbook's cell is when it is not plain text; the value is the name shown to people."""

    NUMBER = "数值"
    FORMULA = "公式"
    ERROR = "错误值"
    BOOLEAN = "逻辑值"
    DATE = "日期"


class SheetRow(NamedTuple):
    """One data row: ``line`` is where it starts in the file, counted from 1 with the header.

    In a workbook lines are the row numbers a person sees. ``fields`` holds the raw cells of the known
    columns that the row has, ``kinds`` those of them that are no text (None: there are none). A row with
    a ``fault`` could not be cut into cells; ``excerpt`` is what to show of it.
    """

    line: int
    last_line: int
    fields: Mapping[Field, str]
    surplus_cells: bool = False
    fault: str | None = None
    excerpt: str = ""
    kinds: Mapping[Field, CellKind] | None = None
