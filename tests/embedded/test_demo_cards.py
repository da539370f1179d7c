"""Demonstration card files are the same everywhere and hold what they promise."""

import csv
from pathlib import Path

import pytest

from junhong_cmp.cards.iccid import IccidError, is_same_card, normalise
from junhong_cmp.embedded.demo_cards import GOOD_CARDS, operator_file, write_clean_cards

EXAMPLE = Path(__file__).parents[2] / "examples" / "cards.csv"


def _cells(content: bytes) -> list[str]:
    rows = list(csv.reader(content.decode("gb18030").splitlines()))
    header = next(number for number, row in enumerate(rows) if "卡号ICCID" in row)
    return [row[rows[header].index("卡号ICCID")] for row in rows[header + 1 :]]


def test_the_example_is_what_the_generator_writes() -> None:
    assert operator_file().content == EXAMPLE.read_bytes()


def test_the_example_is_no_utf8() -> None:
    with pytest.raises(UnicodeDecodeError):
        EXAMPLE.read_bytes().decode()


def test_the_example_holds_the_cards_duplicates_and_broken_rows_it_counts() -> None:
    example = operator_file()
    seen: dict[str, str] = {}
    duplicates = broken = 0
    for cell in _cells(example.content):
        try:
            number = normalise(cell).value
        except IccidError:
            broken += 1
            continue
        if number[:19] in seen:
            assert is_same_card(seen[number[:19]], number)
            duplicates += 1
        seen.setdefault(number[:19], number)
    assert (len(seen), duplicates, broken) == (GOOD_CARDS, example.duplicates, example.broken)
    assert 30 <= broken <= 60


def test_the_example_shows_every_habit() -> None:
    cells = _cells(operator_file().content)
    for habit in ('="', "'", "８", "\u00a0", "\u200b", "\t", "F", "B"):
        assert sum(habit in cell for cell in cells) >= 5, habit
    assert sum(len(cell) == 19 for cell in cells) >= 50


def test_a_clean_file_holds_the_number_of_different_faultless_cards_asked_for(tmp_path: Path) -> None:
    write_clean_cards(tmp_path / "cards.csv", 2_500)
    with (tmp_path / "cards.csv").open(encoding="utf-8", newline="") as file:
        numbers = [row["ICCID"] for row in csv.DictReader(file)]
    assert len({number[:19] for number in numbers}) == 2_500
    assert all(normalise(number).warnings == () for number in numbers)
