"""What happens to the shards when cards are created, changed or deleted."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.roster import roster_row
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.due import FirstDue
from junhong_cmp.polling.lanes import Lanes
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

_STRETCH: Final = 100
"""Cards worked on at a stretch: an import shares the event loop with polls, which must not wait for it."""
_TRIP: Final = 100
"""Cards Redis is given at a time: it serves nobody else meanwhile."""


class PollingLifecycleService:
    """A lifecycle service brings the shards in line with cards as they come, change and go.

    Call it after the transaction has been committed. Each call may be repeated. One that fails
    for a Redis fault may be left: the reconciler finds what is missing or stale.
    """

    def __init__(
        self,
        queue_manager: PollingQueueManager,
        config_manager: PollingConfigManager,
        *,
        settings: PollingSettings | None = None,
    ) -> None:
        self._queue = queue_manager
        self._config = config_manager
        self._settings = settings if settings is not None else PollingSettings()

    async def cards_created(self, cards: Sequence[Card]) -> int:
        """Let new cards wait for their first poll; return how many places in shards that made."""
        return await self._add(cards, POLLING_TASK_TYPES)

    async def cards_changed(
        self,
        changes: Sequence[tuple[Card, Card]],
        task_types: Sequence[TaskType] = POLLING_TASK_TYPES,
    ) -> None:
        """Follow (before, after) pairs: polling switched, account moved, another rule or none any more.

        A card whose polling begins is removed first: a poll under way that still saw the old card
        then finds its claim gone and cannot take the card out again. One that is to be polled more
        often than before comes forward to its new phase.
        """
        leaving: defaultdict[tuple[TaskType, int], list[tuple[int, int | str]]] = defaultdict(list)
        hastened: defaultdict[tuple[TaskType, int], list[tuple[int, int | str]]] = defaultdict(list)
        coming: list[Card] = []
        now_ms = await self._queue.now_ms() if changes else 0
        for before, after in changes:
            for task_type in task_types:
                was = self._config.rule_for(before, task_type)
                now = self._config.rule_for(after, task_type)
                if (was is None) is not (now is None) or before.account_id != after.account_id:
                    leaving[task_type, before.account_id].append((before.id, ""))
                elif was is not None and now is not None and now.interval < was.interval:
                    first = FirstDue(task_type, now, self._settings.max_backoff)
                    latest = first.of(after.id, now_ms) + first.jitter_ms
                    hastened[task_type, after.account_id].append((after.id, latest))
            coming.append(after)
        await self._queue.remove_cards(leaving)
        await self._add(coming, task_types)
        await self._queue.hasten(hastened)

    async def cards_deleted(self, cards: Sequence[Card]) -> int:
        """Take deleted cards out of every shard; return how many places they had."""
        leaving: defaultdict[tuple[TaskType, int], list[tuple[int, int | str]]] = defaultdict(list)
        for card in cards:
            for task_type in POLLING_TASK_TYPES:
                leaving[task_type, card.account_id].append((card.id, ""))
        return await self._queue.remove_cards(leaving)

    async def _add(self, cards: Sequence[Card], task_types: Sequence[TaskType]) -> int:
        rows = [roster_row(card) for card in cards if card.polling_enabled]
        if not rows:
            return 0
        now_ms = await self._queue.now_ms()
        lanes = Lanes(self._config.snapshot, self._queue, self._settings)
        for start in range(0, len(rows), _STRETCH):
            lanes.place(rows[start : start + _STRETCH], now_ms)
            await asyncio.sleep(0)
        due = lanes.due()
        return await self._queue.add_places(
            {shard: places for shard, places in due.items() if shard.task_type in task_types},
            cards_a_trip=_TRIP,
        )
