"""Every Scenario listed in docs/reference/scenarios.md has exactly one test that bears its title."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "reference" / "scenarios.md"
TESTS = ROOT / "tests" / "scenarios"


def listed_scenarios() -> dict[str, set[str]]:
    """Scenario titles by the test file their Requirement names."""
    scenarios: dict[str, set[str]] = {}
    current = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## .*`(test_\w+\.py)`", line):
            current = heading.group(1)
            scenarios[current] = set()
        elif item := re.match(r"- \*\*(.+?)\*\*", line):
            scenarios[current].add(item.group(1))
    return scenarios


def titles_in(path: Path) -> list[str]:
    """First docstring lines of a file's tests."""
    return [
        (ast.get_docstring(node) or "").splitlines()[0]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]


def test_every_requirement_has_its_file_and_every_scenario_its_test() -> None:
    scenarios = listed_scenarios()
    assert scenarios
    assert set(scenarios) == {path.name for path in TESTS.glob("test_*.py")}
    for name, titles in scenarios.items():
        tested = titles_in(TESTS / name)
        assert sorted(tested) == sorted(titles), name
