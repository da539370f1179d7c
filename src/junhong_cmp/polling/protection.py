"""What the rules about stops and resumes say of cards as PostgreSQL has them now."""

from collections.abc import Mapping, Sequence

from junhong_cmp.cards.limit_store import count_pools, load_limits
from junhong_cmp.cards.limits import NO_LIMITS
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.past_operations import find_past_operations
from junhong_cmp.cards.protection import Decision, ProtectionFacts, decide_protection
from junhong_cmp.cards.usage import BillingTerms, CycleId, billing_cycle
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.clock import Clock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import in_transaction


def billing_terms(account: CarrierAccount) -> BillingTerms | None:
    """Return when the account's cycles begin; None when this machine does not know its time zone."""
    zone = find_zone(account.tz)
    return None if zone is None else BillingTerms(account.billing_day, zone)


class ProtectionJudge:
    """A protection judge gathers what a decision depends on, pools counted up to the minute, and decides."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    async def decide(
        self, cards: Sequence[Card], accounts: Mapping[int, CarrierAccount]
    ) -> dict[int, Decision]:
        """Return a decision for each card whose account and its billing cycle are known."""
        now = self._clock.now()
        known = {
            card.id: (card, account, terms)
            for card in cards
            if (account := accounts.get(card.account_id)) and (terms := billing_terms(account))
        }
        if not known:
            return {}
        await self._count_pools(list(known.values()))
        limits = await load_limits(self._pool, known.keys())
        past = await find_past_operations(self._pool, known.keys())
        return {
            card_id: decide_protection(
                ProtectionFacts(
                    card=card,
                    account=account,
                    terms=terms,
                    limits=limits.get(card_id, NO_LIMITS),
                    last_stop=past[card_id].last_stop,
                    failed_at=past[card_id].failed_at,
                ),
                now,
            )
            for card_id, (card, account, terms) in known.items()
        }

    async def _count_pools(self, known: Sequence[tuple[Card, CarrierAccount, BillingTerms]]) -> None:
        now = self._clock.now()
        by_cycle: dict[CycleId, set[int]] = {}
        for card, _, terms in known:
            if card.pool_id is not None:
                by_cycle.setdefault(billing_cycle(now, terms.billing_day, terms.tz), set()).add(card.pool_id)

        async def count(conn: Conn) -> None:
            for cycle, pool_ids in sorted(by_cycle.items()):
                await count_pools(conn, sorted(pool_ids), cycle)

        if by_cycle:
            await in_transaction(self._pool, count)
