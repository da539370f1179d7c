"""One look of alert rules over all cards."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.alert_store import find_alert_candidates, list_alert_rules, raise_alerts
from junhong_cmp.cards.alerts import AlertKind, AlertRule, alert_text
from junhong_cmp.cards.limit_store import count_pools, load_limits
from junhong_cmp.cards.limits import NO_LIMITS, CardLimits
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.pool_alerts import list_pool_ids, raise_pool_alerts
from junhong_cmp.cards.usage import CycleId, billing_cycle
from junhong_cmp.cards.zones import find_zone
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

_PAGE: Final = 1000


@dataclass(slots=True)
class AlertSweep:
    """An alert sweep raises what rules of some kinds say, once per card, rule, billing cycle and level.

    Each page of cards is its own short transaction. Swept twice, or by two at once, nothing is raised twice.

    It looks at every card each time, in 0.6 to 0.8 s of PostgreSQL a rule and million cards: a quarter of a
    percent of a core every five minutes. To look only at those that changed would cost more. An index by
    the time of the last reading or change would be written by every poll; now a poll rewrites its row in
    place, for no column it changes is in an index. And time itself, or a plan or rule changed by hand, makes
    cards fall under a rule that have not changed.
    """

    pool: Pool
    config_manager: PollingConfigManager
    clock: Clock = field(default_factory=SystemClock)
    page: int = _PAGE

    async def sweep(self, kinds: Collection[AlertKind], draining: asyncio.Event) -> int:
        """Return how many alerts were raised; ends early when ``draining`` is set."""
        rules = await list_alert_rules(self.pool, kinds)
        async with self.pool.acquire() as conn:
            accounts = await list_accounts(conn)
        total = 0
        for rule in rules:
            raised = 0
            for account in accounts:
                if rule.account_id in (None, account.id):
                    raised += await self._apply(rule, account, draining)
            if raised:
                log.warning("产生告警", rule=rule.name, kind=rule.kind.value, level=rule.level, cards=raised)
            total += raised
        return total

    async def _apply(self, rule: AlertRule, account: CarrierAccount, draining: asyncio.Event) -> int:
        zone = find_zone(account.tz)
        if zone is None:
            return 0
        now, raised, after_id = self.clock.now(), 0, 0
        cycle = billing_cycle(now, account.billing_day, zone)
        if rule.kind is AlertKind.POOL_USAGE:
            return await self._apply_to_pools(rule, account, cycle, now)
        while not draining.is_set():
            place = (account.id, cycle, after_id)
            cards = await find_alert_candidates(self.pool, rule, place, now, self.page)
            raised += await self._raise(rule, cycle, cards, now)
            if len(cards) < self.page:
                break
            after_id = cards[-1].id
        return raised

    async def _apply_to_pools(
        self, rule: AlertRule, account: CarrierAccount, cycle: CycleId, now: datetime
    ) -> int:
        pool_ids = await list_pool_ids(self.pool, account.id)

        async def look(conn: Conn) -> int:
            await count_pools(conn, pool_ids, cycle)
            return await raise_pool_alerts(conn, rule, account.id, cycle, now)

        return await in_transaction(self.pool, look) if pool_ids else 0

    async def _raise(self, rule: AlertRule, cycle: CycleId, cards: list[Card], now: datetime) -> int:
        limits: dict[int, CardLimits] = {}
        if rule.kind is AlertKind.PLAN_USAGE and cards:
            limits = await load_limits(self.pool, [card.id for card in cards])
        texts = [
            (card.id, text)
            for card in cards
            if self._concerns(rule, card)
            and (text := alert_text(rule, card, cycle, now, limits.get(card.id, NO_LIMITS))) is not None
        ]
        if not texts:
            return 0
        return await in_transaction(self.pool, lambda conn: raise_alerts(conn, rule, cycle, texts, now))

    def _concerns(self, rule: AlertRule, card: Card) -> bool:
        """Readings of a card that no rule has polled are not late."""
        return (
            rule.kind is not AlertKind.STALE_DATA
            or self.config_manager.rule_for(card, TaskType.POLLING_CARDDATA) is not None
        )
