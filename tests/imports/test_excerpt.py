import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.imports.excerpt import show, without_numbers


@given(st.text(max_size=200))
def test_what_is_shown_is_short_on_one_line_and_storable(raw: str) -> None:
    shown = show(raw)
    assert shown.isprintable()
    assert len(shown) <= 64 * 10
    assert "\0" not in shown
    shown.encode()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("89860400000000001234", "…1234"),
        ("898604B7192270274525、接入号", "…4525、接入号"),
        ("8986 0400 0000 0000 123A", "…123A"),
        ("\uff18" * 20, "…" + "\uff18" * 4),
        ("13800138000、套餐", "…8000、套餐"),
        ("入库日期 2026-01-31、批次2026", "入库日期 2026-01-31、批次2026"),
    ],
)
def test_long_numbers_are_left_out_of_what_is_said(text: str, left: str) -> None:
    assert without_numbers(text) == left
