import pytest

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.ctcc_numbers import echoed_number, is_about
from junhong_cmp.gateway.errors import BadResponse

CARD = CardRef(1, "8986031234567890001", msisdn="1410028214051")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1410028214051", "1410028214051"),
        ("861410028214051", "1410028214051"),
        ("8614900000000", "14900000000"),
        ("8986031234567890001", "8986031234567890001"),
        (1410028214051, "1410028214051"),
    ],
)
def test_the_countrys_prefix_is_left_out(number: object, expected: str) -> None:
    assert echoed_number({"number": number}, "number") == expected


@pytest.mark.parametrize("number", [None, "", "null", "1" * 200, "12 34", "\uff11" * 13, True, ["1"]])
def test_what_is_no_number_is_refused(number: object) -> None:
    with pytest.raises(BadResponse):
        echoed_number({"number": number}, "number")


def test_a_number_is_about_the_card_if_it_is_its_iccid_in_either_form_or_its_access_number() -> None:
    assert is_about(CARD.iccid, CARD, None)
    assert is_about(CARD.iccid + "5", CARD, None)
    assert is_about("1410028214051", CARD, "1410028214051")
    assert not is_about("1410028214051", CARD, None)
    assert not is_about("8986031234567890002", CARD, "1410028214051")
