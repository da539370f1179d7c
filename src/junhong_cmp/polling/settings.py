"""The figures polling runs with; one value object, plain values, defaults that suit production."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingSettings:
    """Durations and limits of polling.

    Attributes:
        visibility: how long a claimed card may wait in the task queue before it is due again.
        turn_timeout: the longest a poll may take from its start to its write-back.
        slot_lease: how long an in-flight slot outlives a crashed holder; at least ``turn_timeout``.
        rate_wait: the longest a started poll waits for its account's rate token.
        put_back: how much later a card comes back that could not be polled for no fault of its own.
        max_backoff: cap of the back-off of a failing card; never below the card's interval.
        max_pause: cap of a carrier's wish to pause an account.
        high_water: pending poll tasks at which the scheduler stops claiming.
        low_water: pending poll tasks at which it resumes.
        unproven_backlog: pending poll tasks the scheduler allows while it does not know yet how fast they are
            processed; from then on it allows what is processed within half of ``visibility``.
        gather: how long cards of a shard that go together in one call are left to gather, once all that were
            due have been claimed.
        idle_tick: longest the scheduler sleeps when no card is known to be due; after that it looks for
            notices of cards due sooner, which costs the same for any number of shards.
        min_tick: shortest time between two rounds of claims.
        reconcile_every: time between two comparisons of PostgreSQL with the shards.
        init_page: cards read from PostgreSQL at a time by the initializer and the reconciler.

    """

    visibility: timedelta = timedelta(seconds=120)
    turn_timeout: timedelta = timedelta(seconds=60)
    slot_lease: timedelta = timedelta(seconds=75)
    rate_wait: timedelta = timedelta(seconds=2)
    put_back: timedelta = timedelta(seconds=5)
    max_backoff: timedelta = timedelta(hours=6)
    max_pause: timedelta = timedelta(hours=1)
    high_water: int = 5000
    low_water: int = 2500
    unproven_backlog: int = 256
    gather: timedelta = timedelta(seconds=1)
    idle_tick: timedelta = timedelta(milliseconds=250)
    min_tick: timedelta = timedelta(milliseconds=50)
    reconcile_every: timedelta = timedelta(minutes=10)
    init_page: int = 20_000

    def __post_init__(self) -> None:
        """Refuse figures that would break the claim protocol."""
        if self.slot_lease < self.turn_timeout:
            raise ValueError("slot_lease 不得短于 turn_timeout，否则在途名额会先于轮询到期")
        if not 0 < self.low_water <= self.high_water:
            raise ValueError("low_water 必须大于 0 且不超过 high_water")
        if self.unproven_backlog <= 0:
            raise ValueError("unproven_backlog 必须大于 0")
