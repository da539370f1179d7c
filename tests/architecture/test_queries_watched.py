"""Whoever asks PostgreSQL for the first rows in an order is tested with tables it knows nothing of."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
PAGED = re.compile(r"\bORDER BY\b[^\"]*?\bLIMIT \$?\d")
CROWDED = re.compile(r"^from tests\.crowd import", re.MULTILINE)
UNWATCHED = {
    "junhong_cmp.cards.past_operations": "the last two operations of a card, by an index of cards",
    "junhong_cmp.cli.status_report": "the latest imports, by their primary key",
    "junhong_cmp.exports.dossier": "the latest entries of one card, by indexes of cards",
    "junhong_cmp.imports.overview": "the latest imports, by their primary key",
}


def test_what_is_paged_is_watched_among_twenty_thousand_cards() -> None:
    paged = {
        ".".join(path.relative_to(SRC).with_suffix("").parts)
        for path in SRC.rglob("*.py")
        if PAGED.search(path.read_text(encoding="utf-8"))
    }
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    crowded = [text for text in texts if CROWDED.search(text)]
    watched = {module for module in paged if any(f"from {module} import" in text for text in crowded)}
    assert sorted(paged - watched) == sorted(UNWATCHED)
