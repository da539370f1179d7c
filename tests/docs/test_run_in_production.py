"""What operators are told to watch for is what the program says."""

import re
from pathlib import Path

import junhong_cmp

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "run-in-production.md"


def watched_lines() -> list[str]:
    """The first cell of each row of the table of log lines."""
    section = PAGE.read_text(encoding="utf-8").partition("## What to watch\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| ([^|]*[一-鿿][^|]*) \|", section, re.MULTILINE)


def test_every_line_to_watch_for_is_written_somewhere() -> None:
    said = "\n".join(
        path.read_text(encoding="utf-8") for path in Path(junhong_cmp.__file__).parent.rglob("*.py")
    )
    sentences = [
        sentence
        for cell in watched_lines()
        for sentence in re.split(r", again.*|, | without | soon after", cell)
        if sentence
    ]
    assert len(sentences) > 10
    assert [sentence for sentence in sentences if f'"{sentence}' not in said] == []
