"""What an operator is told about a file as a whole; every sentence is a hint, none a refusal."""

from collections.abc import Sequence

from junhong_cmp.imports.excerpt import show
from junhong_cmp.imports.header import list_names


def column_notes(ignored: Sequence[str]) -> list[str]:
    """Return the hint about columns that mean nothing to us, if there are any."""
    return [f"未识别的列已忽略：{list_names(ignored)}"] if ignored else []


def sheet_notes(read: str, others: Sequence[str]) -> list[str]:
    """Return the hint about the sheets of a workbook that were not read, if there are any."""
    if not others:
        return []
    return [f"只读取了工作表“{show(read)}”，未读取：{list_names([show(name) for name in others])}"]
