"""Comparison of PostgreSQL with the shards, in both directions and in bounded memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from junhong_cmp.cards.roster import find_in_roster
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.lanes import Lanes
from junhong_cmp.polling.queue_manager import NEVER_MS, PollingQueueManager
from junhong_cmp.polling.seeding import SeedWalk, ShardSeeder
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.shards import ShardId

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What a comparison found: cards in PostgreSQL, places missing, stale, and waiting too long.

    ``searched`` shards had to be looked through card by card.
    """

    cards: int
    added: int
    removed: int
    hastened: int
    searched: int


class PollingReconciler:
    """A reconciler adds the cards missing from the shards and removes those that have no business there.

    First every card of PostgreSQL is put where it belongs, if it is not there. A shard that then holds
    as many cards as belong there holds exactly those; only one that holds more is looked through.
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
        self._seeder = ShardSeeder(pool, queue_manager, config_manager, settings)

    async def reconcile(self, *, hasten: bool = False) -> ReconcileReport:
        """Compare once; with ``hasten`` cards that wait longer than their rule says come forward."""
        walk = SeedWalk()
        await self._seeder.walk(walk, hasten=hasten)
        suspects = await self._suspects(walk.expected)
        removed = 0
        for shard in suspects:
            removed += await self._remove_stale(shard)
        report = ReconcileReport(walk.cards, walk.added, removed, walk.hastened, len(suspects))
        say = log.warning if report.added or report.removed else log.info
        say(
            "轮询对账完成",
            cards=report.cards,
            added=report.added,
            removed=report.removed,
            hastened=report.hastened,
            searched=report.searched,
        )
        return report

    async def _suspects(self, expected: Mapping[ShardId, int]) -> list[ShardId]:
        """Return the shards that hold more than what belongs there, or what would wait for ever."""
        shards = self._queue.shards(self._config.snapshot.accounts)
        counts = await self._queue.count_each(shards)
        return [
            shard
            for shard, count in zip(shards, counts, strict=True)
            if count.cards > expected.get(shard, 0) or count.endless
        ]

    async def _remove_stale(self, shard: ShardId) -> int:
        removed, cursor = 0, 0
        while True:
            cursor, found = await self._queue.scan(shard, cursor, self._settings.init_page)
            stale = await self._stale(shard, found)
            if stale:
                removed += await self._queue.remove_from(shard, stale)
            if not cursor:
                return removed

    async def _stale(self, shard: ShardId, found: Sequence[tuple[int, int]]) -> list[tuple[int, int | str]]:
        """Return what does not belong there, each with the score it must still have to be removed."""
        rows = await find_in_roster(self._pool, [card_id for card_id, _ in found])
        lanes = Lanes(self._config.snapshot, self._queue, self._settings)
        lanes.place(list(rows.values()), now_ms=0)
        wanted = set(lanes.due().get(shard, ())[1::2])
        stale: list[tuple[int, int | str]] = []
        for card_id, score in found:
            if score >= NEVER_MS:  # it would wait for ever; the next comparison adds it with a due time
                stale.append((card_id, ""))
            elif card_id not in wanted:
                stale.append((card_id, score))
        return stale
