from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.excerpt import show


@given(st.text(max_size=200))
def test_what_is_shown_is_short_on_one_line_and_storable(raw: str) -> None:
    shown = show(raw)
    assert shown.isprintable()
    assert len(shown) <= 64 * 10
    assert "\0" not in shown
    shown.encode()
