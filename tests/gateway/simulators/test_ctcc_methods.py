import re

import pytest

from junhong_cmp.gateway.simulators.ctcc_methods import METHODS, access_number_of, problem_of

ICCIDS = [f"898603{number:013d}" for number in range(2000)]


def test_access_numbers_are_thirteen_digits_and_different() -> None:
    numbers = {access_number_of(iccid) for iccid in ICCIDS}
    assert len(numbers) == len(ICCIDS)
    assert all(re.fullmatch(r"1410[0-9]{9}", number) for number in numbers)


def test_both_forms_of_a_card_have_one_number() -> None:
    assert access_number_of(ICCIDS[0]) == access_number_of(f"{ICCIDS[0]}5")


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("queryTraffic", {"iccid": ICCIDS[0]}),
        ("queryTraffic", {"access_number": "14900000000"}),
        ("realNameQueryIot", {"access_number": "1410000000000"}),
        ("getSIMList", {"pageIndex": "12"}),
        ("disabledNumber", {"access_number": "1410000000000", "acctCd": "", "orderTypeId": "20"}),
    ],
)
def test_whole_calls_have_no_problem(method: str, query: dict[str, str]) -> None:
    assert problem_of(METHODS[method], query) is None
