"""Everything that is checked between the start of a poll and its question to the carrier."""

from collections.abc import Sequence
from dataclasses import dataclass

from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.store import load_cards
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.db.pool import Pool
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.eligibility import first_due_of
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.query import DATABASE_FAULTS
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.turn import REMOVED, Ending, Turn, put_back


@dataclass(frozen=True, slots=True)
class Prepared:
    """A poll with nothing in its way but the account's limits."""

    card: Card
    account: CarrierAccount
    rule: PollRule
    gateway: GatewayClient


@dataclass(slots=True, kw_only=True)
class TurnPreparation:
    """A turn preparation loads the card and finds out whether, and by which rule, it may be polled now."""

    queue_manager: PollingQueueManager
    config_manager: PollingConfigManager
    gateway: GatewayClient | None
    pauses: AccountPauses
    settings: PollingSettings
    rare: RareLog
    loads: MicroBatcher[int, Card | None]

    async def prepare(self, turn: Turn, now_ms: int) -> Prepared | Ending:
        """Return what the question needs, or how the turn ends without one."""
        try:
            card = await self.loads.submit(turn.payload.card_id)
        except DATABASE_FAULTS as error:  # without it the answer could not be kept: do not even ask
            self.rare.warning("数据库不可用，轮询推迟", error=type(error).__name__)
            return put_back(now_ms, self.settings.put_back)
        rule = None if card is None else self.config_manager.rule_for(card, turn.task_type)
        if card is None or rule is None:
            return REMOVED
        if card.account_id != turn.payload.account_id:
            await self._move(turn, card, rule)
            return REMOVED
        return self._check_account(turn, card, rule, now_ms)

    def _check_account(self, turn: Turn, card: Card, rule: PollRule, now_ms: int) -> Prepared | Ending:
        account = self.config_manager.snapshot.accounts[card.account_id]
        if not account.polling_enabled:
            return put_back(now_ms, self.settings.put_back)
        resting = self.pauses.remaining(account)
        if resting is not None:
            return put_back(now_ms, min(resting, self.settings.max_pause))
        if self.gateway is None:
            self.rare.warning("网关未配置，轮询推迟", task_type=str(turn.task_type))
            return put_back(now_ms, self.settings.put_back)
        return Prepared(card, account, rule, self.gateway)

    async def _move(self, turn: Turn, card: Card, rule: PollRule) -> None:
        """Let a card that changed its account wait in the shard of its new one."""
        due = first_due_of(card, turn.task_type, rule, turn.started.now_ms, self.settings)
        await self.queue_manager.add_many(turn.task_type, card.account_id, [(card.id, due)])


def loading_batcher(pool: Pool) -> MicroBatcher[int, Card | None]:
    """Return a batcher that loads live cards by id; None stands for one that is not there."""

    async def load(card_ids: Sequence[int]) -> Sequence[Card | None]:
        cards = await load_cards(pool, card_ids)
        return [cards.get(card_id) for card_id in card_ids]

    return MicroBatcher(load, name="polling_load")
