"""What an operator changes of the limits of cards: their own threshold, and the plan they name."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from junhong_cmp.cards.model import Card
from junhong_cmp.db.pool import Conn

_RECORD: Final = """
    WITH wanted AS (
        SELECT id, CASE WHEN $2 THEN $3::bigint ELSE threshold_kb END AS threshold_kb,
            CASE WHEN $4 THEN $5::text ELSE plan END AS plan
        FROM iot_card WHERE id = ANY ($1::bigint[]) AND deleted_at IS NULL
        ORDER BY id FOR NO KEY UPDATE)
    UPDATE iot_card AS c
    SET threshold_kb = w.threshold_kb, plan = w.plan, version = c.version + 1, updated_at = now()
    FROM wanted AS w
    WHERE c.id = w.id AND (c.threshold_kb, c.plan) IS DISTINCT FROM (w.threshold_kb, w.plan)
    RETURNING c.id
"""


class Keep(Enum):
    """What is not to be changed."""

    AS_IS = auto()


@dataclass(frozen=True, slots=True)
class LimitEdit:
    """A limit edit says what becomes of a card's threshold and plan; None takes one away."""

    threshold_kb: int | Keep | None = Keep.AS_IS
    plan: str | Keep | None = Keep.AS_IS

    def applied_to(self, card: Card) -> Card:
        """Return the card as it will be."""
        if not isinstance(self.threshold_kb, Keep):
            card = card._replace(threshold_kb=self.threshold_kb)
        return card if isinstance(self.plan, Keep) else card._replace(plan=self.plan)


async def record_limits(conn: Conn, card_ids: Collection[int], edit: LimitEdit) -> list[int]:
    """Change the limits of the live cards among ``card_ids``; return those it made a difference to."""
    threshold_kb, plan = edit.threshold_kb, edit.plan
    rows = await conn.fetch(
        _RECORD,
        list(card_ids),
        not isinstance(threshold_kb, Keep),
        None if isinstance(threshold_kb, Keep) else threshold_kb,
        not isinstance(plan, Keep),
        None if isinstance(plan, Keep) else plan,
    )
    return sorted(row["id"] for row in rows)
