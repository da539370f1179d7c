"""Cards that have reached a limit, and what the carrier was asked about them."""

from typing import Any

from tests.polling.plant import Plant, add_cards

from junhong_cmp.cards.model import Card, CarrierAccount

CYCLE = "2026-03-01"
"""Of the fake clock's first of March, in Shanghai."""
STOPPED = [("stop", "threshold", "done")]


async def over_limit(plant: Plant, account: CarrierAccount, count: int = 1, **columns: Any) -> list[Card]:
    """Cards in service that have reached their threshold in the current cycle."""
    cards = await add_cards(plant.pool, account, count, first=100)
    fields = {"status": "active", "threshold_kb": 1000, "cycle": CYCLE, "cycle_used_kb": 1000} | columns
    sets = ", ".join(f"{name} = ${place}" for place, name in enumerate(fields, start=2))
    await plant.pool.execute(
        f"UPDATE iot_card SET {sets} WHERE id = ANY ($1::bigint[])",  # noqa: S608 - names from above
        [card.id for card in cards],
        *fields.values(),
    )
    return cards


def calls(plant: Plant) -> list[str]:
    return [operation for operation, _ in plant.gateway.calls]
