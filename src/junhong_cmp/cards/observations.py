"""What polls found out about cards, and what became of writing it down."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from junhong_cmp.cards.model import CardStatus, RealNameStatus


class RecordOutcome(StrEnum):
    """What became of one observation."""

    RECORDED = "recorded"
    SUPERSEDED = "superseded"  # a newer observation is already there
    GONE = "gone"  # the card was deleted or moved to another account meanwhile


class UsageWrite(NamedTuple):
    """A usage reading of the month so far; ``reading_at`` is the carrier's time of it."""

    card_id: int
    account_id: int
    reading_kb: int
    reading_at: datetime
    observed_at: datetime


class StatusWrite(NamedTuple):
    """A card's state at the carrier: the raw code and what it stands for."""

    card_id: int
    account_id: int
    raw: str
    status: CardStatus
    observed_at: datetime


class RealNameWrite(NamedTuple):
    """A card's real-name state."""

    card_id: int
    account_id: int
    status: RealNameStatus
    observed_at: datetime


class FailureWrite(NamedTuple):
    """A poll that failed for a reason of the card's own; ``not_found``: the carrier doesn't know it."""

    card_id: int
    account_id: int
    observed_at: datetime
    not_found: bool = False


class Recorded(NamedTuple):
    """The outcome of one observation, in the order the observations were given.

    ``changed``: the card's state differs from before (status, real-name state, orphan flag,
    billing cycle). ``delta_kb``: usage this reading added; ``cycle`` and ``used_kb`` are the card's after it.
    ``fail_count``: failures in a row.
    """

    outcome: RecordOutcome
    changed: bool = False
    delta_kb: int = 0
    fail_count: int = 0
    cycle: str | None = None
    used_kb: int | None = None
