"""Used against threshold, plan and pool: alerts raised, cards handed over to be stopped or given back."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import structlog

from junhong_cmp.cards.alert_store import list_alert_rules, raise_alerts
from junhong_cmp.cards.alerts import USAGE_KINDS, AlertKind, AlertRule, alert_text
from junhong_cmp.cards.limit_store import load_limits
from junhong_cmp.cards.limits import NO_LIMITS, CardLimits
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.pool_alerts import raise_pool_alerts
from junhong_cmp.cards.protection import ProtectionAction
from junhong_cmp.cards.store import load_cards
from junhong_cmp.cards.usage import CycleId, billing_cycle
from junhong_cmp.clock import Clock, SystemClock
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.db.pool import Conn, Pool
from junhong_cmp.db.retrying import in_transaction
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.protection import ProtectionJudge, billing_terms

_HANDED_OVER: Final = frozenset({ProtectionAction.STOP, ProtectionAction.RESUME_RAISED})

log = structlog.stdlib.get_logger(__name__)


class PackageEvaluator:
    """A package evaluator looks at cards in batches, as PostgreSQL has them; twice is as good as once."""

    def __init__(
        self,
        pool: Pool,
        config_manager: PollingConfigManager,
        tasks: CardTasks,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._config = config_manager
        self._tasks = tasks
        self._clock = clock if clock is not None else SystemClock()
        self._judge = ProtectionJudge(pool, self._clock)
        self._batcher: MicroBatcher[int, None] = MicroBatcher(self._evaluate, name="polling_package")

    async def close(self) -> None:
        """Finish the batch under way."""
        await self._batcher.close()

    async def evaluate(self, card_ids: Iterable[int]) -> None:
        """Return when what is to be said about the cards' usage has been said."""
        for result in await self._batcher.submit_many(card_ids):
            if isinstance(result, Exception):
                raise result

    async def _evaluate(self, card_ids: Sequence[int]) -> Sequence[None]:
        cards = list((await load_cards(self._pool, set(card_ids))).values())
        accounts = self._config.snapshot.accounts
        decisions = await self._judge.decide(cards, accounts)  # counts the pools too: alerts go by that
        await self._raise_alerts([card for card in cards if card.id in decisions], accounts)
        await self._tasks.protect(
            card_id for card_id, decision in decisions.items() if decision.action in _HANDED_OVER
        )
        return [None] * len(card_ids)

    async def _raise_alerts(self, cards: Sequence[Card], accounts: Mapping[int, CarrierAccount]) -> None:
        rules = await list_alert_rules(self._pool, USAGE_KINDS) if cards else []
        if not rules:
            return
        limits = await load_limits(self._pool, [card.id for card in cards])
        by_account: defaultdict[int, list[Card]] = defaultdict(list)
        for card in cards:
            by_account[card.account_id].append(card)
        for rule in rules:
            raised = 0
            for account_id, concerned in by_account.items():
                if rule.account_id in (None, account_id):
                    raised += await self._apply(rule, accounts[account_id], concerned, limits)
            if raised:
                log.warning("产生告警", rule=rule.name, kind=rule.kind.value, level=rule.level, cards=raised)

    async def _apply(
        self,
        rule: AlertRule,
        account: CarrierAccount,
        cards: Sequence[Card],
        limits: Mapping[int, CardLimits],
    ) -> int:
        terms, now = billing_terms(account), self._clock.now()
        if terms is None:
            return 0
        cycle = billing_cycle(now, terms.billing_day, terms.tz)

        async def raise_them(conn: Conn) -> int:
            if rule.kind is AlertKind.POOL_USAGE:
                return await raise_pool_alerts(conn, rule, account.id, cycle, now)
            texts = self._texts(rule, cards, cycle, limits)
            return await raise_alerts(conn, rule, cycle, texts, now) if texts else 0

        if rule.kind is AlertKind.POOL_USAGE and all(card.pool_id is None for card in cards):
            return 0
        return await in_transaction(self._pool, raise_them)

    def _texts(
        self, rule: AlertRule, cards: Sequence[Card], cycle: CycleId, limits: Mapping[int, CardLimits]
    ) -> list[tuple[int, str]]:
        now = self._clock.now()
        return [
            (card.id, text)
            for card in cards
            if rule.category in (None, card.category)
            and (text := alert_text(rule, card, cycle, now, limits.get(card.id, NO_LIMITS))) is not None
        ]
