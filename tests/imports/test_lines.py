import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.lines import Line, LineSplitter


def split(data: bytes, *, encoding: str = "utf-8", piece: int = 5, max_chars: int = 100) -> list[Line]:
    splitter = LineSplitter(encoding, max_chars=max_chars)
    lines = [line for at in range(0, len(data), piece) for line in splitter.feed(data[at : at + piece])]
    return lines + splitter.feed(b"", final=True)


@pytest.mark.parametrize("piece", [1, 2, 3, 100])
def test_all_three_line_ends_in_one_file(piece: int) -> None:
    texts = [(line.number, line.text) for line in split(b"a\nb\r\nc\rd\n\ne", piece=piece)]
    assert texts == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, ""), (6, "e")]


def test_other_separators_of_unicode_do_not_end_a_line() -> None:
    assert [line.text for line in split("a\x0bb\x0c\x1c\u2028\u2029\x85c\n".encode())] == [
        "a\x0bb\x0c\x1c\u2028\u2029\x85c"
    ]


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_an_overlong_line_is_marked_and_its_neighbours_survive(piece: int) -> None:
    lines = split(b"ok\n" + b"x" * 101 + b"\n" + b"y" * 100 + b"\nend", piece=piece)
    assert [(line.number, line.overlong) for line in lines] == [(1, False), (2, True), (3, False), (4, False)]
    assert [len(line.text) for line in lines] == [2, 100, 100, 3]


def test_a_line_without_end_holds_no_more_than_the_cap() -> None:
    splitter = LineSplitter("utf-8", max_chars=1000)
    for _ in range(10_000):
        assert splitter.feed(b"x" * 1000) == []
    assert sum(map(len, splitter._held)) <= 1001
    assert splitter.feed(b"", final=True) == [Line(1, "x" * 1000, overlong=True)]


def test_bytes_changed_since_the_inspection_are_refused() -> None:
    with pytest.raises(FileRefusedError, match="读取过程中被更改"):
        split(b"\xff\xff")


@given(st.lists(st.sampled_from(["a", "卡", "\n", "\r", "\r\n", "", "😀", "\x0b"])), st.integers(1, 9))
def test_cutting_anywhere_gives_the_same_lines(parts: list[str], piece: int) -> None:
    text = "".join(parts)
    expected = re.split(r"\r\n|\n|\r", text)
    if expected[-1] == "":
        expected.pop()
    for encoding in ("utf-8", "utf-8-sig", "gb18030", "utf-16"):
        lines = split(text.encode(encoding), encoding=encoding, piece=piece)
        assert [line.text for line in lines] == expected
        assert [line.number for line in lines] == list(range(1, len(expected) + 1))


@given(st.lists(st.sampled_from(["a", "卡" * 3, "x" * 7, "\n", "\r\n"])), st.integers(1, 9))
def test_a_line_is_overlong_however_it_is_cut(parts: list[str], piece: int) -> None:
    text = "".join(parts)
    expected = [Line(at, one[:6], len(one) > 6) for at, one in enumerate(re.split(r"\r?\n", text), 1)]
    if not expected[-1].text:
        expected.pop()
    assert split(text.encode(), piece=piece, max_chars=6) == expected
