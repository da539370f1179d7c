from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.polling.fair_shares import fair_shares

WANTS = st.lists(st.integers(0, 1000), max_size=20)


@given(st.integers(0, 10_000), WANTS, st.integers(0, 50))
def test_all_of_it_or_all_that_is_wanted_and_nobody_gets_more(
    total: int, wants: list[int], turn: int
) -> None:
    shares = fair_shares(total, wants, turn)
    assert sum(shares) == min(total, sum(wants))
    assert all(0 <= share <= want for share, want in zip(shares, wants, strict=True))


@given(st.integers(0, 10_000), WANTS, st.integers(0, 50))
def test_who_is_cut_short_gets_no_less_than_anybody_else(total: int, wants: list[int], turn: int) -> None:
    shares = fair_shares(total, wants, turn)
    for share, want in zip(shares, wants, strict=True):
        if share < want:
            assert share >= max(shares) - 1


def test_when_there_is_not_one_for_each_everybody_has_a_turn() -> None:
    served = [0, 0, 0]
    for turn in range(300):
        for index, share in enumerate(fair_shares(1, [5, 500, 50], turn)):
            served[index] += share
    assert served == [100, 100, 100]
