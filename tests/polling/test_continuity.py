"""The word of a leader about Redis, as text."""

import pytest

from junhong_cmp.polling.continuity import BROKEN, Continuity


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (Continuity("0f3a"), "kept:0f3a"),
        (Continuity("0f3a", 1_796_039_013_519), "left:0f3a:1796039013519"),
        (Continuity(""), "kept:"),
    ],
)
def test_it_reads_what_it_wrote(word: Continuity, text: str) -> None:
    assert word.encode() == text
    assert Continuity.decode(text.encode()) == word


@pytest.mark.parametrize(
    "value", [BROKEN.encode(), b"", b"kept", b"left:a", b"left:a:-1", b"kept:a:1", b"\xff"]
)
def test_anything_else_is_no_word(value: bytes) -> None:
    assert Continuity.decode(value) is None
