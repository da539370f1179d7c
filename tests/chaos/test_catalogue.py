"""The page of fault tests lists the rows that have tests, each with the file its tests are in."""

import re
from pathlib import Path

CHAOS = Path(__file__).parent
PAGE = CHAOS.parents[1] / "docs" / "reference" / "chaos.md"


def rows_on_page() -> set[tuple[str, str]]:
    rows = re.findall(
        r"^\| ([A-Z]\d+) \|[^|]*\| `([a-z_]+\.py)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {(row, file) for row, file in rows}


def rows_with_tests() -> set[tuple[str, str]]:
    return {
        (row.upper(), path.name)
        for path in CHAOS.glob("test_*.py")
        for row in re.findall(r"async def test_([a-z]\d+)_", path.read_text(encoding="utf-8"))
    }


def test_page_and_tests_agree() -> None:
    assert rows_on_page() == rows_with_tests()
