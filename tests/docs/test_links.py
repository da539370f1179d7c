"""Links lead somewhere, files that are named exist, and decisions are numbered without gaps."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("docs", "src", "tests", "benchmarks", "examples")
PAGES = sorted([*ROOT.glob("*.md"), *(page for place in PLACES[:3] for page in (ROOT / place).rglob("*.md"))])
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(rf"(?<![\w/.*-])((?:{'|'.join(PLACES)})/[\w./-]+\.(?:md|py|lua|csv|example))\b")
MADE_UP = {"tests/gateway/drivers/test_pigeon.py", "docs/reference/carriers/pigeon.md"}  # add-a-carrier.md


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The headings as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(prose):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" in link or (target.exists() and (not anchor or anchor in anchors(target))):
            continue
        yield link


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not list(dead_links(page))


def test_every_file_that_is_named_exists() -> None:
    texts = [ROOT / "Makefile", ROOT / "pyproject.toml", *PAGES]
    texts += [path for place in PLACES for path in (ROOT / place).rglob("*.py") if ".venv" not in path.parts]
    named = {(relative(path), name) for path in texts for name in NAMED.findall(path.read_text("utf-8"))}
    assert len(named) > len(PAGES)
    assert not {(path, name) for path, name in named if not (ROOT / name).exists() and name not in MADE_UP}


def test_decisions_are_numbered_without_gaps() -> None:
    titles = [path.read_text(encoding="utf-8").splitlines()[0] for path in DECISIONS]
    numbers = [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]
    assert [path.name[:4] for path in DECISIONS] == numbers
    assert [title.split()[1] for title in titles] == numbers
