"""Whether a card is to be stopped or resumed by the rules (停复机、达量断网). Pure.

In the order they apply:

- A card stopped for usage is resumed when the billing cycle it was stopped in is over, or sooner if its
  limits were raised so far that it exceeds none: whoever raises one expects the card back. One that was
  stopped by hand, by the carrier or for anything else is never resumed here.
- A card in service whose time is over is stopped, if its account asks for that.
- A card in service that has reached its threshold, its plan or its pool's line is stopped, if its account
  asks for that: on a reading of the current cycle only (there is none before the carrier's lag has passed),
  and once a cycle. Whoever resumes it by hand within
  the cycle keeps it running; one resumed here for a raised limit is stopped at that.
- What was tried and failed is not tried again for a while.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from junhong_cmp.cards.limits import NO_LIMITS, CardLimits, has_limit
from junhong_cmp.cards.model import Card, CardStatus, CarrierAccount, StopReason
from junhong_cmp.cards.usage import BillingTerms, CycleId, billing_cycle, cycle_start

USAGE_REASONS: Final = frozenset({StopReason.OVER_PLAN, StopReason.THRESHOLD, StopReason.POOL})
"""Why a card is stopped for usage, and may be resumed when a new cycle begins."""

IN_SERVICE: Final = frozenset({CardStatus.ACTIVE, CardStatus.TESTING, CardStatus.UNKNOWN})
"""States a stop changes; a card in a state nobody knows is in service if it has usage."""

RETRY_AFTER: Final = timedelta(hours=6)
"""A stop or resume the carrier refused is not ordered again for so long."""


class ProtectionAction(StrEnum):
    """What is to be done with a card."""

    NOTHING = "nothing"
    POLL_FIRST = "poll_first"
    STOP = "stop"
    RESUME = "resume"
    RESUME_RAISED = "resume_raised"


@dataclass(frozen=True, slots=True)
class PastStop:
    """The last stop of a card that is known to have worked; ``lifted`` since by a raised limit, or not."""

    reason: StopReason
    cycle: CycleId | None
    at: datetime
    lifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionFacts:
    """All that is known of a card when it is decided about."""

    card: Card
    account: CarrierAccount
    terms: BillingTerms
    limits: CardLimits = NO_LIMITS
    last_stop: PastStop | None = None
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """An action, and what a stop is for."""

    action: ProtectionAction
    reason: StopReason = StopReason.NONE


NOTHING: Final = Decision(ProtectionAction.NOTHING)


def decide_protection(facts: ProtectionFacts, now: datetime) -> Decision:
    """Return what is to be done with the card now."""
    if facts.failed_at is not None and now - facts.failed_at < RETRY_AFTER:
        return NOTHING
    if facts.card.status is CardStatus.SUSPENDED:
        return _decide_resume(facts, now)
    if facts.card.status not in IN_SERVICE:
        return NOTHING
    if _is_due_to_expire(facts, now):
        return Decision(ProtectionAction.STOP, StopReason.EXPIRED)
    return _decide_stop(facts, now)


def _decide_resume(facts: ProtectionFacts, now: datetime) -> Decision:
    card = facts.card
    if card.stop_reason not in USAGE_REASONS or (facts.account.stop_on_expiry and _has_expired(card, now)):
        return NOTHING
    stopped_in, cycle = _stop_cycle(facts), _cycle(facts, now)
    if stopped_in is not None and stopped_in < cycle:
        return Decision(ProtectionAction.RESUME, card.stop_reason)
    if _is_limit_raised(facts, cycle):
        return Decision(ProtectionAction.RESUME_RAISED, card.stop_reason)
    return NOTHING


def _is_limit_raised(facts: ProtectionFacts, cycle: CycleId) -> bool:
    """Whether our own stop of this cycle is for a limit that the card, as far as known, exceeds no more."""
    card, last = facts.card, facts.last_stop
    if last is None or last.reason is not card.stop_reason or last.cycle != cycle or card.cycle != cycle:
        return False
    return exceeded_limit(card, facts.limits, cycle) is None


def _decide_stop(facts: ProtectionFacts, now: datetime) -> Decision:
    card, cycle = facts.card, _cycle(facts, now)
    if not facts.account.protect_enabled or not has_limit(card, facts.limits):
        return NOTHING
    last = facts.last_stop
    if last is not None and last.reason in USAGE_REASONS and last.cycle == cycle and not last.lifted:
        return NOTHING
    if card.cycle != cycle:
        is_known = now - cycle_start(cycle, facts.terms.tz) >= facts.account.usage_lag
        return Decision(ProtectionAction.POLL_FIRST) if is_known else NOTHING
    reason = exceeded_limit(card, facts.limits, cycle)
    return NOTHING if reason is None else Decision(ProtectionAction.STOP, reason)


def exceeded_limit(card: Card, limits: CardLimits, cycle: CycleId) -> StopReason | None:
    """Return the limit a card has reached by its reading of ``cycle``; None if none, or if it has no such."""
    if card.cycle != cycle:
        return None
    if card.threshold_kb and card.cycle_used_kb >= card.threshold_kb:
        return StopReason.THRESHOLD
    if limits.plan_kb is not None and card.cycle_used_kb >= limits.plan_kb:
        return StopReason.OVER_PLAN
    if limits.pool is not None and limits.pool.is_used_up(cycle):
        return StopReason.POOL
    return None


def _is_due_to_expire(facts: ProtectionFacts, now: datetime) -> bool:
    expires_at, last = facts.card.expires_at, facts.last_stop
    if not facts.account.stop_on_expiry or expires_at is None or now < expires_at:
        return False
    return last is None or last.reason is not StopReason.EXPIRED or last.at < expires_at


def _has_expired(card: Card, now: datetime) -> bool:
    return card.expires_at is not None and card.expires_at <= now


def _stop_cycle(facts: ProtectionFacts) -> CycleId | None:
    """Return the cycle the card was stopped in: by the record of the stop, else by its change of state."""
    last, changed_at = facts.last_stop, facts.card.status_changed_at
    if last is not None and last.reason is facts.card.stop_reason and last.cycle is not None:
        return last.cycle
    return None if changed_at is None else _cycle(facts, changed_at)


def _cycle(facts: ProtectionFacts, at: datetime) -> CycleId:
    return billing_cycle(at, facts.terms.billing_day, facts.terms.tz)
