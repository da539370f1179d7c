"""What a card may use in a billing cycle: its own threshold, its plan, its pool. Pure."""

from dataclasses import dataclass

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.usage import CycleId


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """A data pool that cards share, and what they have used of it together in ``cycle``."""

    id: int
    name: str
    capacity_kb: int
    threshold_kb: int | None
    cycle: CycleId | None
    used_kb: int

    @property
    def stop_at_kb(self) -> int:
        """The total at which its cards are to be stopped."""
        return self.threshold_kb or self.capacity_kb

    def is_used_up(self, cycle: CycleId) -> bool:
        """Whether the total was counted in ``cycle`` and has reached the line; 0 is no line."""
        return self.cycle == cycle and 0 < self.stop_at_kb <= self.used_kb


@dataclass(frozen=True, slots=True)
class CardLimits:
    """The limits of one card that are not its own: None where it has no such plan, or no pool."""

    plan_kb: int | None = None
    pool: PoolState | None = None


NO_LIMITS = CardLimits()


def has_limit(card: Card, limits: CardLimits) -> bool:
    """Whether any usage could be too much for the card."""
    return bool(card.threshold_kb) or limits.plan_kb is not None or limits.pool is not None
