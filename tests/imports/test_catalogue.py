"""The page of fault tests lists the rows about files, each with the file its tests are in."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "chaos.md"


def test_page_and_tests_agree() -> None:
    text = PAGE.read_text(encoding="utf-8")
    on_page = set(re.findall(r"^\| (F\d+) \|[^|]*\| `tests/imports/([a-z_\d]+\.py)` \|", text, re.MULTILINE))
    with_tests = {
        (row.upper(), path.name)
        for path in HERE.glob("test_*.py")
        for row in re.findall(r"async def test_(f\d+)_", path.read_text(encoding="utf-8"))
    }
    assert {row for row, _ in on_page} == {"F1", "F2", "F3", "F4", "F5"}
    assert on_page == with_tests
