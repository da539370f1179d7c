"""What ``junhong up`` runs."""

from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cli.up_stage import shares


@given(st.integers(1, 1_000_000), st.integers(1, 9))
def test_cards_are_split_evenly_and_none_is_lost(cards: int, accounts: int) -> None:
    split = shares(cards, accounts)
    assert (len(split), sum(split)) == (accounts, cards)
    assert max(split) - min(split) <= 1
