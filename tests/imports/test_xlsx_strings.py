import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.errors import FileRefusedError
from junhong_cmp.imports.xlsx_plain import STRING_END
from junhong_cmp.imports.xlsx_strings import read_strings


def read(items: str, *, piece: int = 1_000_000) -> list[str]:
    data = f"<sst>{items}</sst>".encode()
    return read_strings((data[at : at + piece] for at in range(0, len(data), piece)), cell_chars=10)


def test_runs_are_joined_and_phonetic_guides_left_out() -> None:
    rich = "<si><r><t>月</t></r><r><rPr/><t>包</t></r><rPh sb='0' eb='1'><t>yue</t></rPh></si>"
    assert read(f"<si><t>a</t></si>{rich}<si/><si><t>_x000D_</t></si>") == ["a", "月包", "", "\r"]


def test_a_long_string_is_cut_right_behind_the_cap() -> None:
    assert read(f"<si><t>{'x' * 100}</t></si>") == ["x" * 11]
    assert read("<si>" + "<r><t>xx</t></r>" * 100 + "</si>") == ["x" * 11]


STRING = st.sampled_from(["月包", "", " x ", "_x0041_", "x" * 20, "a&amp;b", "\n"]).map("<t>{}</t>".format)
RICH = st.just("<r><t>a</t></r><r><t>b</t></r>") | st.just("<t>a</t><rPh><t>b</t></rPh>") | st.just("")


@given(st.lists(STRING | STRING | RICH, max_size=8), st.integers(1, 60))
def test_plain_strings_are_read_as_those_that_are_not(items: list[str], piece: int) -> None:
    """A blank makes a string one that has to be read tag by tag."""
    together = read("".join(f"<si>{item}</si>" for item in items))
    assert read("".join(f"<si>{item}</si>" for item in items), piece=piece) == together
    assert read("".join(f"<si>{item} </si>" for item in items), piece=piece) == together


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("<si/>", "", ["", "x"]),
        ("<si></si><!-- </si>", " -->", [""]),
        ("<si></si><![CDATA[</si>", "]]>", [""]),
        ("<si><t>a</t><si></si>", "</si>", ["", "x", "x"]),
        ("<si><rPh><si></si>", "</rPh></si>", ["", "", ""]),
    ],
)
@pytest.mark.parametrize("piece", [1, 1_000_000])
def test_a_string_is_none_everywhere(before: str, after: str, found: list[str], piece: int) -> None:
    assert read(f"{before}<si><t>x</t></si>{after}", piece=piece) == found


@pytest.mark.parametrize(("opener", "closer"), [("<!--x", "-->"), ("<?ab ", "?>")])
def test_behind_an_empty_string_as_much_as_an_end_tag_is_none(opener: str, closer: str) -> None:
    """The first bite ends with ``opener``, which is as long as the end tag of a string."""
    assert len(opener) == len(STRING_END)
    first = "<sst>" + " " * (2 * 8192 - len(f"<sst><si/>{opener}")) + f"<si/>{opener}"
    pieces = [first.encode(), f"<si><t>x</t></si>{closer}</sst>".encode()]
    assert read_strings(pieces, cell_chars=10) == [""]


@pytest.mark.parametrize("text", ["]]>", "\uffff", "<", "&nbsp;"])
def test_a_string_that_is_not_well_formed_is_refused(text: str) -> None:
    with pytest.raises(FileRefusedError, match="XML"):
        read(f"<si></si><si><t>{text}</t></si>", piece=1)
