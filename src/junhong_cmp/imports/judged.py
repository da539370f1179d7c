"""A row and what became of it, as far as the file alone tells."""

from typing import NamedTuple

from junhong_cmp.imports.model import RowResult
from junhong_cmp.imports.rows import Candidate


class Judged(NamedTuple):
    """One row's outcome as far as the file tells, and the last line that the row covers."""

    last_line: int
    outcome: Candidate | RowResult
