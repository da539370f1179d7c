"""From PostgreSQL to the shards: every enabled card in its place, page by page."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from junhong_cmp.cards.roster import RosterRow, stream_roster
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.background import cancel_and_wait
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.lanes import Lanes
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId

_SLICE: Final = 500
"""Cards worked on at a stretch: the scheduler shares the event loop and must not wait for a whole page."""


@dataclass(slots=True)
class SeedWalk:
    """How far a walk over all cards has come; interrupted, it is taken up at ``after_id``.

    ``expected`` counts the places each shard must have for the cards met so far.
    """

    after_id: int = 0
    cards: int = 0
    places: int = 0
    added: int = 0
    hastened: int = 0
    expected: defaultdict[ShardId, int] = field(default_factory=lambda: defaultdict(int))


@dataclass(frozen=True, slots=True)
class _Page:
    """One page of cards: by shard its (due, card), … as a flat list, and (card, latest due) pairs."""

    last_id: int
    cards: int
    due: dict[ShardId, list[int]]
    latest: dict[ShardId, list[tuple[int, int]]]


class ShardSeeder:
    """A shard seeder walks over all enabled cards and adds those that are missing from their shards.

    Seeding is idempotent: the due time of a missing card follows from its id and what PostgreSQL
    knows of it, and a card that is there keeps its score. While a page goes to Redis the next one is
    worked out and the one after it is read; no more than these three are in memory.
    """

    def __init__(
        self,
        pool: Pool,
        queue_manager: PollingQueueManager,
        config_manager: PollingConfigManager,
        settings: PollingSettings,
    ) -> None:
        self._pool = pool
        self._queue = queue_manager
        self._config = config_manager
        self._settings = settings

    async def walk(self, progress: SeedWalk, *, hasten: bool = False) -> None:
        """Walk on to the last card; with ``hasten`` also bring forward what waits longer than its rule says.

        The latter spreads a shortened interval over its phases within one period.
        """
        sending: asyncio.Task[None] | None = None
        try:
            pages = stream_roster(self._pool, after_id=progress.after_id, page=self._settings.init_page)
            async with aclosing(pages):
                async for rows in pages:
                    page = await self._place(rows, hasten=hasten)
                    if sending is not None:
                        await sending
                    sending = asyncio.create_task(self._send(page, progress))
            if sending is not None:
                await sending
        finally:
            if sending is not None and not sending.done():
                await cancel_and_wait(sending)

    async def _place(self, rows: Sequence[RosterRow], *, hasten: bool) -> _Page:
        now_ms = await self._queue.now_ms()
        lanes = Lanes(self._config.snapshot, self._queue, self._settings)
        for start in range(0, len(rows), _SLICE):
            lanes.place(rows[start : start + _SLICE], now_ms, hasten=hasten)
            await asyncio.sleep(0)
        return _Page(rows[-1][0], len(rows), lanes.due(), lanes.latest())

    async def _send(self, page: _Page, progress: SeedWalk) -> None:
        """Add the places of a page; only then does the walk count it as done."""
        added = await self._queue.add_places(page.due)
        hastened = await self._queue.hasten_places(page.latest) if page.latest else 0
        progress.after_id = page.last_id
        progress.cards += page.cards
        progress.added += added
        progress.hastened += hastened
        for shard, places in page.due.items():
            progress.places += len(places) // 2
            progress.expected[shard] += len(places) // 2
