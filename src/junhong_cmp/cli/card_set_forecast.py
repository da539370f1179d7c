"""What the rules would make of cards whose limits change, by what is known of the cards now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from junhong_cmp.cards.limit_store import load_limits, load_plan_quotas
from junhong_cmp.cards.limits import NO_LIMITS, CardLimits
from junhong_cmp.cards.model import Card, CardStatus, CarrierAccount, StopReason
from junhong_cmp.cards.protection import IN_SERVICE, USAGE_REASONS, exceeded_limit
from junhong_cmp.cards.usage import CycleId, billing_cycle
from junhong_cmp.cli.card_choice import portions
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.protection import billing_terms


@dataclass(frozen=True, slots=True)
class Forecast:
    """A forecast knows the accounts of cards, what their plans contain, and the pools they are in."""

    accounts: Mapping[int, CarrierAccount]
    quotas: Mapping[tuple[int, str], int]
    limits: Mapping[int, CardLimits]

    @classmethod
    async def load(cls, pool: Pool, cards: Sequence[Card], accounts: Sequence[CarrierAccount]) -> Self:
        """Read what the cards are held against."""
        limits: dict[int, CardLimits] = {}
        for portion in portions([card.id for card in cards]):
            limits |= await load_limits(pool, portion)
        return cls({account.id: account for account in accounts}, await load_plan_quotas(pool), limits)

    def is_to_stop(self, card: Card) -> bool:
        """Whether the card, as it will be, is beyond a limit in service, which its account wants stopped."""
        account = self.accounts[card.account_id]
        return account.protect_enabled and card.status in IN_SERVICE and self._exceeded(card) is not None

    def is_to_resume(self, before: Card, after: Card) -> bool:
        """Whether the card was stopped for a limit it exceeds now, and will not exceed any more."""
        if before.status is not CardStatus.SUSPENDED or before.stop_reason not in USAGE_REASONS:
            return False
        return self._exceeded(before) is not None and self._exceeded(after) is None

    def codes_without(self, cards: Sequence[Card], plan: str) -> list[str]:
        """Return the accounts among the cards' in which nobody has said what the plan contains."""
        ids = {card.account_id for card in cards}
        return sorted(self.accounts[each].code for each in ids if (each, plan) not in self.quotas)

    def _exceeded(self, card: Card) -> StopReason | None:
        cycle = self._cycle_of(card)
        if cycle is None:
            return None
        plan_kb = self.quotas.get((card.account_id, card.plan or ""))
        return exceeded_limit(card, replace(self.limits.get(card.id, NO_LIMITS), plan_kb=plan_kb), cycle)

    def _cycle_of(self, card: Card) -> CycleId | None:
        terms = billing_terms(self.accounts[card.account_id])
        return None if terms is None else billing_cycle(datetime.now(UTC), terms.billing_day, terms.tz)
