"""Finding the cards for whose sake a carrier refuses a whole batch."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from junhong_cmp.gateway.client import CardRef
from junhong_cmp.gateway.errors import CardUnknown, GatewayError, Transient

A = TypeVar("A")

MOST_CALLS: Final = 24
"""Calls spent on one batch: enough to find one card in a hundred, and not to try each of them."""


async def ask_in_halves(
    cards: Sequence[CardRef],
    ask: Callable[[Sequence[CardRef]], Awaitable[Mapping[int, A | GatewayError]]],
) -> dict[int, A | GatewayError]:
    """Ask about all cards at once; if one among them is unknown, about ever smaller halves.

    What was learnt is kept whatever happens to the rest.

    Raises:
        GatewayError: the first call failed for another reason; it concerns all cards.

    """
    results: dict[int, A | GatewayError] = {}
    groups = [cards]
    for _ in range(MOST_CALLS):
        if not groups:
            return results
        group = groups.pop()
        try:
            results.update(await ask(group))
        except CardUnknown as error:
            if len(group) == 1:
                results[group[0].card_id] = error
                continue
            middle = len(group) // 2
            groups += [group[middle:], group[:middle]]
        except GatewayError as error:
            if group is cards:
                raise
            groups.append(group)
            return results | _all_told(groups, error)
    return results | _all_told(groups, Transient("同一批中未知的卡过多，此卡留待下次查询"))


def _all_told(groups: Sequence[Sequence[CardRef]], error: GatewayError) -> dict[int, GatewayError]:
    return {card.card_id: error for group in groups for card in group}
