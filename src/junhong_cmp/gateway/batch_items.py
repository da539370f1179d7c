"""The items of an answer to many: each to its card, and none believed that belongs to no card asked about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import structlog

from junhong_cmp.gateway.card_index import CardIndex
from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import BadResponse, GatewayError, WrongCard

log = structlog.stdlib.get_logger(__name__)

A = TypeVar("A")
Item = Mapping[str, object]

_MOST_TOLD: Final = 10


def answers_by_card(
    items: Sequence[object],
    cards: Sequence[CardRef],
    read: Callable[[Item, CardRef], A],
    missing: GatewayError,
) -> dict[int, A | GatewayError]:
    """Return an answer or an error for each card; what is wrong with one item spoils no other.

    Every item says itself which card it is about, so those that echo a card asked about stand. An item
    about any other card is refused, and so is one that names none: the cards left without an item then
    have that for their error, for it may be theirs. An answer with not one item of ours is nobody's.

    Args:
        items: the list, as it came.
        cards: those asked about.
        read: makes the answer of one card from its item; raises ``GatewayError``.
        missing: the error of a card without an item where nothing is wrong with the others.

    Raises:
        WrongCard: all items are refused, or there was one card only, and an item is about another.
        BadResponse: no item names a card.

    """
    index = CardIndex(cards)
    results: dict[int, A | GatewayError] = {}
    refused: GatewayError | None = None
    for item in items:
        try:
            card, own = _owner(item, index)
        except GatewayError as error:
            refused = refused if isinstance(refused, WrongCard) else error
            continue
        if card.card_id in results:
            results[card.card_id] = BadResponse("批量应答中此卡重复出现")
        else:
            results[card.card_id] = _outcome(own, card, read)
    if refused is not None:
        if not results or len(cards) == 1:  # of a single question nobody else suffers by a refusal
            raise refused
        _tell(refused, [card.card_id for card in cards if card.card_id not in results])
    for card in cards:
        results.setdefault(card.card_id, missing if refused is None else refused)
    return results


def _owner(item: object, index: CardIndex) -> tuple[CardRef, Item]:
    iccid = item.get("iccid") if isinstance(item, dict) else None
    if isinstance(iccid, int) and not isinstance(iccid, bool):
        iccid = str(iccid)  # exact: JSON integers have no bound here
    if not isinstance(item, dict) or not isinstance(iccid, str):
        raise BadResponse("网关响应无效：批量应答的条目没有 iccid")
    return index.find(iccid), item


def _outcome(item: Item, card: CardRef, read: Callable[[Item, CardRef], A]) -> A | GatewayError:
    try:
        return read(item, card)
    except GatewayError as error:
        return error


def _tell(refused: GatewayError, without: Sequence[int]) -> None:
    if isinstance(refused, WrongCard):
        log.warning("批量应答中有未查询的卡，已拒绝", cards=len(without), card_ids=without[:_MOST_TOLD])
