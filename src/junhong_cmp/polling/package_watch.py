"""Readings that cross a line, noticed as they are written, at no cost to those that do not."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from junhong_cmp.cards.alert_store import list_alert_rules
from junhong_cmp.cards.alerts import USAGE_KINDS
from junhong_cmp.cards.limit_store import POOL_COUNT_AGE, load_plan_quotas
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.observations import Recorded
from junhong_cmp.cards.package_lines import PackageLines
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.faults import ENQUEUE_FAULTS
from junhong_cmp.polling.package_evaluator import PackageEvaluator
from junhong_cmp.polling.rare_log import RareLog

_REREAD_AFTER_S: Final = 30.0


class PackageWatch:
    """A package watch has a card evaluated when its reading, committed just now, crossed a line.

    It asks the carrier nothing. Lines are read again now and then; one that moved meanwhile, and a card whose
    evaluation failed, are found by the periodic check.
    """

    def __init__(
        self, pool: Pool, evaluator: PackageEvaluator, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = pool
        self._evaluator = evaluator
        self._monotonic = monotonic
        self._lines = PackageLines()
        self._reread_at = float("-inf")
        self._pools: dict[int, float] = {}
        self._rare = RareLog()

    async def noticed(self, readings: Iterable[tuple[Card, Recorded]]) -> None:
        """Look at recorded readings; each card is as it was before its own. No passing fault is raised."""
        grown = [
            (card, recorded)
            for card, recorded in readings
            if recorded.used_kb is not None and (recorded.delta_kb or card.cycle != recorded.cycle)
        ]
        if not grown:
            return
        try:
            await self._reread()
            crossing = [card.id for card, recorded in grown if self._crosses(card, recorded)]
            if crossing:
                await self._evaluator.evaluate(crossing)
        except ENQUEUE_FAULTS as error:
            self._rare.warning("套餐判定未能完成，等待定时检查", error=type(error).__name__)

    def _crosses(self, card: Card, recorded: Recorded) -> bool:
        return self._lines.crosses(card, recorded.cycle, recorded.used_kb or 0) or self._is_pool_due(card)

    def _is_pool_due(self, card: Card) -> bool:
        """Whether the card's pool grew and has not been looked at for a while, by this process."""
        if card.pool_id is None:
            return False
        now = self._monotonic()
        if now - self._pools.get(card.pool_id, float("-inf")) < POOL_COUNT_AGE.total_seconds():
            return False
        self._pools[card.pool_id] = now
        return True

    async def _reread(self) -> None:
        now = self._monotonic()
        if now < self._reread_at:
            return
        self._reread_at = now + _REREAD_AFTER_S  # first: the others go by what was known before
        self._lines = PackageLines(
            await load_plan_quotas(self._pool), await list_alert_rules(self._pool, USAGE_KINDS)
        )
