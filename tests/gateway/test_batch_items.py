"""Lying answers to many cards: every lie in every place, and what it costs the others."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from junhong_cmp.gateway.batch_items import answers_by_card
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import BadResponse, CardUnknown, GatewayError, WrongCard

CARDS = [CardRef(number, f"898600123456789{number:05d}") for number in range(5)]
STRANGER = "89860099999999999999"
MISSING = CardUnknown("没有此卡")

LIES: dict[str, tuple[Callable[[dict[str, Any]], list[object]], type[GatewayError]]] = {
    "another card": (lambda item: [item | {"iccid": STRANGER}], WrongCard),
    "another card, twice": (lambda item: [item | {"iccid": STRANGER}] * 2, WrongCard),
    "no card": (lambda item: [{"used": item["used"]}], BadResponse),
    "null": (lambda _: [None], BadResponse),
    "text": (lambda item: [item["iccid"]], BadResponse),
    "a card in a list": (lambda item: [item | {"iccid": [item["iccid"]]}], BadResponse),
    "left out": (lambda _: [], CardUnknown),
    "told twice": (lambda item: [item, item], BadResponse),
    "no figure": (lambda item: [{"iccid": item["iccid"]}], BadResponse),
}


def read(item: Mapping[str, object], card: CardRef) -> int:
    if not isinstance(used := item.get("used"), int):
        raise BadResponse(f"{card.card_id}")
    return used


def told() -> list[dict[str, Any]]:
    return [{"iccid": card.iccid, "used": card.card_id} for card in CARDS]


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("place", range(len(CARDS)))
def test_a_lie_in_any_place_costs_no_other_card_its_answer(lie: str, place: int) -> None:
    make, expected = LIES[lie]
    items: list[object] = [*told()]
    items[place : place + 1] = make(told()[place])
    with capture_logs() as logs:
        answers = answers_by_card(items, CARDS, read, MISSING)
    assert answers.keys() == {card.card_id for card in CARDS}
    assert type(answers.pop(place)) is expected
    assert answers == {card.card_id: card.card_id for card in CARDS if card.card_id != place}
    told_of = [entry["card_ids"] for entry in logs if entry["event"] == "批量应答中有未查询的卡，已拒绝"]
    assert told_of == ([[place]] if expected is WrongCard else [])


@given(st.permutations(range(len(CARDS))))
def test_figures_that_changed_places_with_their_numbers_stay_with_their_numbers(order: list[int]) -> None:
    items = [told()[place] for place in order]
    assert answers_by_card(items, CARDS, read, MISSING) == {card.card_id: card.card_id for card in CARDS}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([{"iccid": STRANGER, "used": 1}], WrongCard),
        ([{"iccid": STRANGER, "used": 1}, None], WrongCard),
        ([None, {"iccid": STRANGER, "used": 1}], WrongCard),
        ([None, 7], BadResponse),
    ],
)
def test_an_answer_with_nothing_of_ours_is_refused_as_a_whole(
    items: list[object], expected: type[GatewayError]
) -> None:
    with pytest.raises(expected):
        answers_by_card(items, CARDS, read, MISSING)


def test_a_single_question_is_answered_by_nothing_else_beside_it() -> None:
    with pytest.raises(WrongCard):
        answers_by_card([told()[0], {"iccid": STRANGER, "used": 1}], CARDS[:1], read, MISSING)


def test_an_empty_answer_says_of_each_card_that_it_is_missing() -> None:
    assert answers_by_card([], CARDS, read, MISSING) == dict.fromkeys(range(len(CARDS)), MISSING)
