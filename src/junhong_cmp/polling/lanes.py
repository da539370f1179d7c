"""Which shards cards belong into and when they are first due there, worked out for very many at once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from junhong_cmp.cards.model import PollTopic
from junhong_cmp.cards.roster import RosterRow, profile_of, progress_columns
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.due import FirstDue
from junhong_cmp.polling.eligibility import poll_rule
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

T = TypeVar("T")

_COLUMNS: Final = {task_type: progress_columns(PollTopic(task_type.kind)) for task_type in POLLING_TASK_TYPES}


class _Lane:
    """A lane is the way of all cards of one profile into the shards of one task type."""

    __slots__ = ("at", "due", "failures_at", "first_due", "latest")

    def __init__(
        self,
        task_type: TaskType,
        first_due: FirstDue,
        due: Sequence[list[int]],
        latest: Sequence[list[tuple[int, int]]],
    ) -> None:
        self.at, self.failures_at = _COLUMNS[task_type]
        self.first_due = first_due
        self.due = due
        self.latest = latest


class Lanes:
    """Lanes sort cards into their shards by one version of the configuration.

    Rules are looked up once a profile, not once a card. A place is (due, card), two integers of a flat
    list: the form in which Redis takes them.
    """

    def __init__(
        self, snapshot: PollingConfigSnapshot, queue_manager: PollingQueueManager, settings: PollingSettings
    ) -> None:
        self._snapshot = snapshot
        self._queue = queue_manager
        self._settings = settings
        self._by_profile: dict[tuple[object, ...], tuple[_Lane, ...]] = {}
        self._due: dict[tuple[TaskType, int], tuple[list[int], ...]] = {}
        self._latest: dict[tuple[TaskType, int], tuple[list[tuple[int, int]], ...]] = {}

    def place(self, rows: Sequence[RosterRow], now_ms: int, *, hasten: bool = False) -> None:
        """Sort cards into their shards; with ``hasten`` note beyond which time none of them waits."""
        known, shard_number = self._by_profile, self._queue.shard_number
        for row in rows:
            card_id, profile = row[0], row[1:7]
            lanes = known.get(profile)
            if lanes is None:
                lanes = known[profile] = self._open(row)
            number = shard_number(card_id) if lanes else 0
            for lane in lanes:
                last_ms = row[lane.at]
                due = lane.first_due.of(card_id, now_ms, last_ms, row[lane.failures_at])
                places = lane.due[number]
                places += (due, card_id)
                if hasten:
                    point = due if last_ms is None else max(due, lane.first_due.of(card_id, now_ms))
                    lane.latest[number].append((card_id, point + lane.first_due.jitter_ms))

    def due(self) -> dict[ShardId, list[int]]:
        """Return (due, card), … for each shard that is to hold a card."""
        return _by_shard(self._due)

    def latest(self) -> dict[ShardId, list[tuple[int, int]]]:
        """Return (card, latest due) pairs for each shard: who follows its rule waits no longer."""
        return _by_shard(self._latest)

    def _open(self, row: RosterRow) -> tuple[_Lane, ...]:
        profile = profile_of(row)
        lanes = []
        for task_type in POLLING_TASK_TYPES:
            rule = poll_rule(profile, task_type, self._snapshot)
            if rule is not None:
                first_due = FirstDue(task_type, rule, self._settings.max_backoff)
                key = (task_type, profile.account_id)
                due = self._due.setdefault(key, self._empty())
                latest = self._latest.setdefault(key, self._empty())
                lanes.append(_Lane(task_type, first_due, due, latest))
        return tuple(lanes)

    def _empty(self) -> tuple[list[Any], ...]:
        return tuple([] for _ in range(self._queue.shards_per_account))


def _by_shard(targets: Mapping[tuple[TaskType, int], Sequence[list[T]]]) -> dict[ShardId, list[T]]:
    return {
        ShardId(task_type, account_id, number): places
        for (task_type, account_id), shards in targets.items()
        for number, places in enumerate(shards)
        if places
    }
