import pytest

from junhong_cmp.gateway.card_index import CardIndex
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import WrongCard

LONG = CardRef(1, "898604B7192270274525")
SHORT = CardRef(2, "8986001234567890002")
TWIN = CardRef(3, "898604B7192270274526")


@pytest.mark.parametrize(
    ("told", "card"),
    [
        (LONG.iccid, LONG),
        (LONG.iccid.lower(), LONG),
        (LONG.iccid[:19], LONG),
        (SHORT.iccid, SHORT),
        (SHORT.iccid + "7", SHORT),
    ],
)
def test_a_card_is_found_by_either_form_of_its_number(told: str, card: CardRef) -> None:
    assert CardIndex([LONG, SHORT]).find(told) is card


@pytest.mark.parametrize(
    "told", ["", "8986", LONG.iccid[:18], TWIN.iccid, SHORT.iccid + "77", "89860099999999999999"]
)
def test_a_card_that_was_not_asked_about_is_not_found(told: str) -> None:
    with pytest.raises(WrongCard):
        CardIndex([LONG, SHORT]).find(told)


def test_a_short_form_of_two_cards_is_neither() -> None:
    index = CardIndex([LONG, TWIN])
    assert index.find(TWIN.iccid) is TWIN
    with pytest.raises(WrongCard):
        index.find(LONG.iccid[:19])


def test_a_card_asked_about_twice_cannot_be_told_apart() -> None:
    with pytest.raises(WrongCard):
        CardIndex([LONG, CardRef(9, LONG.iccid)]).find(LONG.iccid)
