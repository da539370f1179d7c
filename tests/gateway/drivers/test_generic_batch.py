from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from junhong_cmp.gateway.answers import usage_answer
from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers.generic_batch import batch_answers
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, WrongCard

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ONE = CardRef(1, "89860012345678900017")
TWO = CardRef(2, "8986001234567890002")
TWIN = CardRef(3, "89860012345678900018")


def item(iccid: str, used: object = 5) -> dict[str, object]:
    return {"iccid": iccid, "used": used, "unit": "KB", "reading_at": "2026-03-01T11:00:00Z"}


def read(*items: object, cards: tuple[CardRef, ...] = (ONE, TWO)) -> dict[int, UsageAnswer | GatewayError]:
    return batch_answers({"items": list(items)}, cards, read_usage)


def read_usage(fields: Mapping[str, object], card: CardRef) -> UsageAnswer:
    return usage_answer(fields, card, default_unit="KB", now=NOW)


def test_answers_find_their_cards_in_any_order_and_form() -> None:
    answers = read(item(TWO.iccid + "3", 2), item(ONE.iccid, 1))
    assert {card: answer.used_kb for card, answer in answers.items() if isinstance(answer, UsageAnswer)} == {
        1: 1,
        2: 2,
    }


def test_one_bad_item_never_spoils_its_neighbours() -> None:
    answers = read(item(ONE.iccid, -1), item(TWO.iccid, 2))
    assert isinstance(answers[1], BadResponse)
    assert isinstance(answers[2], UsageAnswer)


def test_a_refused_card_has_its_reason() -> None:
    answers = read({"iccid": ONE.iccid, "error": {"code": "card_unknown"}}, item(TWO.iccid))
    assert isinstance(answers[1], CardUnknown)


def test_a_card_left_out_or_told_twice_has_no_answer() -> None:
    answers = read(item(ONE.iccid, 1), item(ONE.iccid, 2))
    assert isinstance(answers[1], BadResponse)
    assert isinstance(answers[2], BadResponse)


def test_a_card_nobody_asked_for_spoils_only_the_one_in_whose_place_it_stands() -> None:
    answers = read(item(ONE.iccid, 1), item("89860099999999999999", 7))
    assert isinstance(answers[1], UsageAnswer)
    assert isinstance(answers[2], WrongCard)
    with pytest.raises(WrongCard):
        read(item("89860099999999999998"), item("89860099999999999999"))


def test_a_short_form_that_fits_two_cards_belongs_to_neither() -> None:
    with pytest.raises(WrongCard):
        read(item(ONE.iccid[:19]), cards=(ONE, TWIN))
    assert len(read(item(ONE.iccid, 1), item(TWIN.iccid, 2), cards=(ONE, TWIN))) == 2


@pytest.mark.parametrize(
    "fields", [{}, {"items": None}, {"items": {}}, {"items": [1]}, {"items": [{"used": 1}]}]
)
def test_what_is_no_list_of_items_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadResponse):
        batch_answers(fields, [ONE], read_usage)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["iccid", "used", "unit", "reading_at", "error"]), st.text()),
        max_size=4,
    )
)
def test_hostile_items_never_crash(items: list[dict[str, str]]) -> None:
    try:
        answers = read(*items)
    except BadResponse:
        return
    assert answers.keys() == {1, 2}
