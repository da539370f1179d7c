"""Cards polled at once, at an operator's word."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from junhong_cmp.cards.model import Card
from junhong_cmp.polling.config import PollingConfigSnapshot
from junhong_cmp.polling.eligibility import poll_rule
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import TaskType


@dataclass(slots=True)
class NowReport:
    """Polls made due now; those under way or due anyway; and cards that are not polled for any type asked.

    ``resting`` of the polls are of an account, or one of its task types, that is paused: they wait.
    """

    hastened: int = 0
    under_way: int = 0
    not_polled: int = 0
    resting: int = 0


class PollNow:
    """A poll-now makes cards due at this moment; the leader then claims them within each account's limits.

    A card that may be claimed already is left alone, and one missing from its shard is put there.
    """

    def __init__(
        self,
        queue_manager: PollingQueueManager,
        snapshot: PollingConfigSnapshot,
        task_types: Sequence[TaskType],
    ) -> None:
        self._queue = queue_manager
        self._snapshot = snapshot
        self._task_types = task_types
        self.report = NowReport()

    async def hasten(self, cards: Sequence[Card]) -> None:
        """Make the cards due, and add what happened to the report."""
        now_ms = await self._queue.now_ms()
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        due: defaultdict[tuple[TaskType, int], list[tuple[int, int]]] = defaultdict(list)
        for card in cards:
            task_types = [
                task_type for task_type in self._task_types if poll_rule(card, task_type, self._snapshot)
            ]
            for task_type in task_types:
                due[task_type, card.account_id].append((card.id, now_ms))
            self.report.not_polled += not task_types
        for (task_type, account_id), pairs in due.items():
            if task_type not in self._snapshot.callable_types(account_id, now):
                self.report.resting += len(pairs)
        added = await self._queue.add(due)
        moved = await self._queue.hasten({place: list(pairs) for place, pairs in due.items()})
        self.report.hastened += added + moved
        self.report.under_way += sum(len(pairs) for pairs in due.values()) - added - moved
