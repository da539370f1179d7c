"""From PostgreSQL to the shards: every enabled card in its place, page by page."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from junhong_cmp.cards.model import Card
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.due import PollRule, milliseconds, phase_point_after
from junhong_cmp.polling.eligibility import first_due_of
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType


@dataclass(frozen=True, slots=True)
class SeedReport:
    """What seeding met: cards, the places they need, those added, and those brought forward."""

    cards: int = 0
    places: int = 0
    added: int = 0
    hastened: int = 0

    def __add__(self, other: "SeedReport") -> "SeedReport":
        return SeedReport(
            self.cards + other.cards,
            self.places + other.places,
            self.added + other.added,
            self.hastened + other.hastened,
        )


class ShardSeeder:
    """A shard seeder adds the cards of a page that are missing from their shards.

    Seeding is idempotent: the due time of a missing card follows from its id and what PostgreSQL
    knows of it, and a card that is there keeps its score.
    """

    def __init__(
        self,
        queue_manager: PollingQueueManager,
        config_manager: PollingConfigManager,
        settings: PollingSettings,
    ) -> None:
        self._queue = queue_manager
        self._config = config_manager
        self._settings = settings

    async def seed(self, cards: Sequence[Card], *, hasten: bool = False) -> SeedReport:
        """Add what is missing; with ``hasten`` also bring forward what waits longer than its rule says.

        The latter spreads a shortened interval over its phases within one period.
        """
        now_ms = await self._queue.now_ms()
        due: defaultdict[tuple[TaskType, int], list[tuple[int, int]]] = defaultdict(list)
        latest: defaultdict[tuple[TaskType, int], list[tuple[int, int | str]]] = defaultdict(list)
        for card in cards:
            for task_type in POLLING_TASK_TYPES:
                rule = self._config.rule_for(card, task_type)
                if rule is None:
                    continue
                first = first_due_of(card, task_type, rule, now_ms, self._settings)
                due[task_type, card.account_id].append((card.id, first))
                if hasten:
                    last_call = _latest_due(card, task_type, rule, now_ms, first)
                    latest[task_type, card.account_id].append((card.id, last_call))
        return SeedReport(
            cards=len(cards),
            places=sum(len(pairs) for pairs in due.values()),
            added=await self._queue.add(due),
            hastened=await self._queue.hasten(latest),
        )


def _latest_due(card: Card, task_type: TaskType, rule: PollRule, now_ms: int, first_ms: int) -> int:
    """Return the time no card that follows its rule waits beyond, jitter included."""
    interval_ms = milliseconds(rule.interval)
    point = phase_point_after(card.id, task_type, interval_ms, now_ms)
    return max(point, first_ms) + int(interval_ms * rule.jitter)
