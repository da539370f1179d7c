"""What a poll changed about its card, followed in the shards of the other task types."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from junhong_cmp.cards.model import Card
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.card_changes import CardFollower
from junhong_cmp.polling.faults import PASSING_FAULTS
from junhong_cmp.polling.lifecycle_service import PollingLifecycleService
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

_Change: TypeAlias = tuple[Card, TaskType]


class PollAftermath:
    """A poll aftermath follows changed cards in batches, for all task types but the one that was polled.

    That one is still in its turn: its own write-back goes by the card as it is now.
    """

    def __init__(self, pool: Pool, lifecycle: PollingLifecycleService) -> None:
        self._follower = CardFollower(pool, lifecycle)
        self._batcher: MicroBatcher[_Change, Card | None] = MicroBatcher(
            self._follow, name="polling_aftermath"
        )
        self._rare = RareLog()

    async def close(self) -> None:
        """Finish the batch under way."""
        await self._batcher.close()

    async def follow(self, before: Card, polled: TaskType) -> Card | None:
        """Return the card as it is now, None when it is gone; the card as it was when nobody can tell."""
        try:
            return await self._batcher.submit((before, polled))
        except PASSING_FAULTS as error:
            self._rare.warning("分片未能跟上卡的变更，等待对账", error=type(error).__name__)
            return before

    async def _follow(self, changes: Sequence[_Change]) -> Sequence[Card | None]:
        by_type: defaultdict[TaskType, dict[int, Card | None]] = defaultdict(dict)
        for before, polled in changes:
            by_type[polled][before.id] = before
        now: dict[TaskType, dict[int, Card]] = {}
        for polled, befores in by_type.items():
            others = [task_type for task_type in POLLING_TASK_TYPES if task_type is not polled]
            now[polled] = await self._follower.follow(befores, others)
        return [now[polled].get(before.id) for before, polled in changes]
