"""The batch answer of the generic contract, taken apart card by card."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from junhong_cmp.gateway.card_index import CardIndex
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.drivers.generic_refusals import coded_refusal
from junhong_cmp.gateway.errors import BadResponse, GatewayError

MAX_BATCH: Final = 100
"""The most cards in one batch query."""


A = TypeVar("A")
Fields = Mapping[str, object]


def batch_answers(
    fields: Fields, cards: Sequence[CardRef], read: Callable[[Fields, CardRef], A]
) -> dict[int, A | GatewayError]:
    """Return an answer or an error for each card; one bad item never spoils its neighbours.

    Args:
        fields: the whole answer.
        cards: those asked about.
        read: makes the answer of one card from its item; raises ``GatewayError``.

    Raises:
        BadResponse: there is no list of items.
        WrongCard: an item is about a card that was not asked for, so the whole answer may be somebody else's.

    """
    items = fields.get("items")
    if not isinstance(items, list):
        raise BadResponse("网关响应无效：批量应答缺少 items 列表")
    asked = CardIndex(cards)
    results: dict[int, A | GatewayError] = {}
    for item in items:
        card, outcome = _item_answer(item, asked, read)
        results[card.card_id] = BadResponse("批量应答中此卡重复出现") if card.card_id in results else outcome
    for card in cards:
        results.setdefault(card.card_id, BadResponse("批量应答中没有此卡"))
    return results


def _item_answer(
    item: object, asked: CardIndex, read: Callable[[Fields, CardRef], A]
) -> tuple[CardRef, A | GatewayError]:
    if not isinstance(item, dict) or not isinstance(iccid := item.get("iccid"), str):
        raise BadResponse("网关响应无效：批量应答的条目没有 iccid")
    card = asked.find(iccid)
    if (refusal := coded_refusal(item)) is not None:
        return card, refusal
    try:
        return card, read(item, card)
    except GatewayError as error:
        return card, error
