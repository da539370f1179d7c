"""Whose answer is it: finding the asked-for card behind the number in an answer to many."""

from collections.abc import Sequence
from typing import Final

from junhong_cmp.gateway.answers import same_card
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import WrongCard

_ICCID19: Final = 19


class CardIndex:
    """A card index finds the card that an item of a batch is about, by either form of its ICCID."""

    def __init__(self, cards: Sequence[CardRef]) -> None:
        self._by_iccid19: dict[str, list[CardRef]] = {}
        for card in cards:
            self._by_iccid19.setdefault(card.iccid[:_ICCID19].upper(), []).append(card)

    def find(self, iccid: str) -> CardRef:
        """Return the one card that is meant.

        Raises:
            WrongCard: none was asked about, or two that the number does not tell apart.

        """
        number = iccid.upper()
        cards = self._by_iccid19.get(number[:_ICCID19], ())
        matches = [card for card in cards if same_card(number, card.iccid.upper())]
        if len(matches) != 1:
            raise WrongCard("批量应答中有未查询或无法区分的卡")
        return matches[0]
