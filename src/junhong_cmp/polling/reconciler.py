"""Comparison of PostgreSQL with the shards, in both directions and in bounded memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from junhong_cmp.cards.store import load_cards, stream_enabled_cards
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.queue_manager import NEVER_MS, PollingQueueManager
from junhong_cmp.polling.seeding import SeedReport, ShardSeeder
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What a comparison found: cards in PostgreSQL, places missing, stale, and waiting too long."""

    cards: int
    added: int
    removed: int
    hastened: int


class PollingReconciler:
    """A reconciler adds the cards missing from the shards and removes those that have no business there."""

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
        self._page = settings.init_page
        self._seeder = ShardSeeder(queue_manager, config_manager, settings)

    async def reconcile(self, *, hasten: bool = False) -> ReconcileReport:
        """Compare once; with ``hasten`` cards that wait longer than their rule says come forward."""
        seeded = SeedReport()
        async for cards in stream_enabled_cards(self._pool, page=self._page):
            seeded += await self._seeder.seed(cards, hasten=hasten)
        removed = await self._remove_stale()
        report = ReconcileReport(seeded.cards, seeded.added, removed, seeded.hastened)
        say = log.warning if report.added or report.removed else log.info
        say(
            "轮询对账完成",
            cards=report.cards,
            added=report.added,
            removed=report.removed,
            hastened=report.hastened,
        )
        return report

    async def _remove_stale(self) -> int:
        removed = 0
        found: list[tuple[ShardId, int, int]] = []
        for shard in self._queue.shards(self._config.snapshot.accounts):
            cursor = 0
            while True:
                cursor, pairs = await self._queue.scan(shard, cursor, self._page)
                found += [(shard, card_id, score) for card_id, score in pairs]
                if len(found) >= self._page:
                    removed += await self._remove_unwanted(found)
                    found = []
                if not cursor:
                    break
        return removed + await self._remove_unwanted(found)

    async def _remove_unwanted(self, found: Sequence[tuple[ShardId, int, int]]) -> int:
        """Remove what does not belong where it was found, unless its score has changed since."""
        if not found:
            return 0
        cards = await load_cards(self._pool, {card_id for _, card_id, _ in found})
        stale: defaultdict[ShardId, list[tuple[int, int | str]]] = defaultdict(list)
        for shard, card_id, score in found:
            card = cards.get(card_id)
            if score >= NEVER_MS:  # it would wait for ever; the next comparison adds it with a due time
                stale[shard].append((card_id, ""))
            elif (
                card is None
                or self._config.rule_for(card, shard.task_type) is None
                or self._queue.shard(shard.task_type, card.account_id, card_id) != shard
            ):
                stale[shard].append((card_id, score))
        removed = 0
        for shard, pairs in stale.items():
            removed += await self._queue.remove_from(shard, pairs)
        return removed
