"""Volumes as people type them."""

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.cards.volumes import volume_text
from junhong_cmp.cli.volumes import parse_volume


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1PB", "1e3MB", "流量", "9" * 30 + "GB"])
def test_no_volume(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_volume(text)


@given(st.integers(1, 2**50))
def test_a_volume_shown_is_the_volume_itself(kilobytes: int) -> None:
    assert parse_volume(volume_text(kilobytes)) == kilobytes
