"""When a card is next due: pure arithmetic over milliseconds of Redis time.

Each (card, task type) has a phase: a stable hash modulo the interval, in absolute time. A card is
due at the points of its phase, give or take the jitter; so the period holds however slow a poll
was, restarts keep the spread, and no state beyond the hash is needed.
"""

import random
from dataclasses import dataclass
from datetime import timedelta

from junhong_cmp.polling.shards import salted_hash, stable_hash
from junhong_cmp.polling.tasks import TaskType

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class PollRule:
    """How often a card is polled; ``jitter`` is a fraction of the interval, 0 ≤ jitter < 0.5."""

    interval: timedelta
    jitter: float = 0.1


def milliseconds(duration: timedelta) -> int:
    """Return a duration in whole milliseconds."""
    return duration // _MILLISECOND


def phase_point_after(card_id: int, task_type: TaskType, interval_ms: int, after_ms: int) -> int:
    """Return the first point of the card's phase strictly after an instant."""
    phase = stable_hash(card_id, task_type) % interval_ms
    return after_ms + interval_ms - (after_ms - phase) % interval_ms


def next_due(
    card_id: int,
    task_type: TaskType,
    rule: PollRule,
    now_ms: int,
    *,
    min_gap: timedelta = timedelta(),
    delay: timedelta = timedelta(),
) -> int:
    """Return when a card polled now is due again.

    A poll may run up to the jitter before the point it serves, so points within the jitter of now
    count as served: the card is polled once for each point. ``delay`` is the additional wait of a
    failing card; it moves the earliest point and leaves the phase alone. No due time lies within
    ``min_gap`` of now.
    """
    interval_ms = max(1, milliseconds(rule.interval))
    jitter_ms = int(interval_ms * rule.jitter)
    gap_ms = milliseconds(min_gap)
    served_until = now_ms + max(jitter_ms, gap_ms) + milliseconds(delay)
    point = phase_point_after(card_id, task_type, interval_ms, served_until)
    shift_ms = int(random.random() * (2 * jitter_ms + 1)) - jitter_ms
    return max(point + shift_ms, now_ms + max(gap_ms, 1))


class FirstDue:
    """A first due tells when cards are due that no shard knows: without jitter, so that restarts agree.

    It applies one rule to very many cards. A point missed since the card's last poll lies in the past,
    and the most overdue cards are claimed first. A card never polled takes its phase after now.
    """

    __slots__ = ("_cap", "_interval_ms", "_rule", "_salt", "jitter_ms")

    def __init__(self, task_type: TaskType, rule: PollRule, max_backoff: timedelta) -> None:
        self._rule = rule
        self._cap = max_backoff
        self._salt = task_type.encode()
        self._interval_ms = max(1, milliseconds(rule.interval))
        self.jitter_ms = int(self._interval_ms * rule.jitter)

    def of(self, card_id: int, now_ms: int, last_ms: int | None = None, failures: int = 0) -> int:
        """Return when the card is due, ``last_ms`` being its last poll if there was one."""
        after = now_ms
        if last_ms is not None:
            waited = milliseconds(backoff_delay(self._rule, failures, self._cap)) if failures > 1 else 0
            after = min(last_ms + waited + self.jitter_ms, now_ms)
        interval_ms = self._interval_ms
        return after + interval_ms - (after - salted_hash(card_id, self._salt)) % interval_ms


def backoff_delay(rule: PollRule, failures: int, cap: timedelta) -> timedelta:
    """Return the wait added after the n-th failure in a row: periods of 1×, 2×, 4×… the interval."""
    if failures <= 1:
        return timedelta()
    interval_ms = milliseconds(rule.interval)
    longest_ms = max(milliseconds(cap), interval_ms)
    doublings = min(failures - 1, 40)  # more would only make a larger number to be capped
    return timedelta(milliseconds=min(interval_ms << doublings, longest_ms) - interval_ms)
