import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.drivers.ctcc_answers import used_kb as used_kb_of
from junhong_cmp.gateway.drivers.ctcc_body import read_reply
from junhong_cmp.gateway.simulators import ctcc_pages as pages


@pytest.mark.parametrize(
    ("used_kb", "written"),
    [
        (0, "0.00MB"),
        (10, "0.00MB"),
        (11, "0.01MB"),
        (1024, "1.00MB"),
        (12_636, "12.33MB"),
        (12_637, "12.34MB"),
    ],
)
def test_usage_is_cut_to_two_places_as_the_platform_does(used_kb: int, written: str) -> None:
    assert read_reply(pages.usage("1", used_kb).body).fields["TOTAL_BYTES_CNT"] == written


@given(st.integers(0, 2**40))
def test_what_is_cut_off_is_less_than_eleven_kb(used_kb: int) -> None:
    told = used_kb_of({"TOTAL_BYTES_CNT": pages.volume_of(used_kb)})
    assert used_kb - 11 <= told <= used_kb
