"""The batch answer of the generic contract, taken apart card by card."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from junhong_cmp.gateway.batch_items import answers_by_card
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
        BadResponse: there is no list of items, or none that names a card.
        WrongCard: no item is about a card that was asked about.

    """
    items = fields.get("items")
    if not isinstance(items, list):
        raise BadResponse("网关响应无效：批量应答缺少 items 列表")

    def read_item(item: Fields, card: CardRef) -> A:
        if (refusal := coded_refusal(item)) is not None:
            raise refusal
        return read(item, card)

    return answers_by_card(items, cards, read_item, BadResponse("批量应答中没有此卡"))
