"""The batch answer of the generic contract, taken apart card by card."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from junhong_cmp.gateway.answers import same_card, usage_answer
from junhong_cmp.gateway.client import CardRef, UsageAnswer
from junhong_cmp.gateway.drivers.generic_refusals import coded_refusal
from junhong_cmp.gateway.errors import BadResponse, GatewayError, WrongCard

MAX_BATCH: Final = 100
"""The most cards in one batch query."""

_ICCID19: Final = 19


def batch_answers(
    fields: Mapping[str, object], cards: Sequence[CardRef], *, default_unit: str, now: datetime
) -> dict[int, UsageAnswer | GatewayError]:
    """Return an answer or an error for each card; one bad item never spoils its neighbours.

    Raises:
        BadResponse: there is no list of items.
        WrongCard: an item is about a card that was not asked for, so the whole answer may be somebody else's.

    """
    items = fields.get("items")
    if not isinstance(items, list):
        raise BadResponse("网关响应无效：批量应答缺少 items 列表")
    asked = _BatchIndex(cards)
    results: dict[int, UsageAnswer | GatewayError] = {}
    for item in items:
        card, outcome = _item_answer(item, asked, default_unit, now)
        results[card.card_id] = BadResponse("批量应答中此卡重复出现") if card.card_id in results else outcome
    for card in cards:
        results.setdefault(card.card_id, BadResponse("批量应答中没有此卡"))
    return results


class _BatchIndex:
    """A batch index finds the card an item is about, by either form of its ICCID."""

    def __init__(self, cards: Sequence[CardRef]) -> None:
        self._by_iccid19: dict[str, list[CardRef]] = {}
        for card in cards:
            self._by_iccid19.setdefault(card.iccid[:_ICCID19].upper(), []).append(card)

    def find(self, iccid: str) -> CardRef:
        cards = self._by_iccid19.get(iccid[:_ICCID19], ())
        matches = [card for card in cards if same_card(iccid, card.iccid.upper())]
        if len(matches) != 1:
            raise WrongCard("批量应答中有未查询或无法区分的卡")
        return matches[0]


def _item_answer(
    item: object, asked: _BatchIndex, default_unit: str, now: datetime
) -> tuple[CardRef, UsageAnswer | GatewayError]:
    if not isinstance(item, dict) or not isinstance(iccid := item.get("iccid"), str):
        raise BadResponse("网关响应无效：批量应答的条目没有 iccid")
    card = asked.find(iccid.upper())
    if (refusal := coded_refusal(item)) is not None:
        return card, refusal
    try:
        return card, usage_answer(item, card, default_unit=default_unit, now=now)
    except GatewayError as error:
        return card, error
