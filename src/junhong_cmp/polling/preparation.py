"""Everything that is checked between the start of a poll and its question to the carrier."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cards.store import load_cards
from junhong_cmp.db.batching import MicroBatcher
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.gateway.client import GatewayClient
from junhong_cmp.polling.config_manager import PollingConfigManager
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.eligibility import first_due_of
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.rare_log import RareLog
from junhong_cmp.polling.settings import PollingSettings
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.polling.turn import REMOVED, Ending, Turn, put_back
from junhong_cmp.polling.write_guard import WriteGuard


class Prepared(NamedTuple):
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
    pool: Pool
    gateway: GatewayClient | None
    pauses: AccountPauses
    guard: WriteGuard
    settings: PollingSettings
    rare: RareLog
    _loads: MicroBatcher[int, Card | None] = field(init=False)
    _refreshes: MicroBatcher[Card, None] = field(init=False)

    def __post_init__(self) -> None:
        """Set the batches up; nothing is sent before the first turn."""
        self._loads = _loading_batcher(self.pool)
        self._refreshes = _refreshing_batcher(self.config_manager)

    async def close(self) -> None:
        """Finish the batches under way; call it after the last turn."""
        await self._loads.close()
        await self._refreshes.close()

    async def prepare(self, turn: Turn) -> Prepared | Ending:
        """Return what the question needs, or how the turn ends without one."""
        try:
            card = await self._loads.submit(turn.payload.card_id)
            if self.guard.is_closed and not await self.guard.try_write():
                return self._put_back(turn)
            return await self._judge(turn, card)
        except DATABASE_FAULTS as error:  # without it the answer could not be kept: do not even ask
            self.rare.warning("数据库不可用，轮询推迟", error=type(error).__name__)
            return self._put_back(turn)

    async def prepare_all(self, turns: Sequence[Turn]) -> list[Prepared | Ending]:
        """Do the same for the cards of one task, which are loaded together."""
        try:
            cards = await load_cards(self.pool, [turn.payload.card_id for turn in turns])
            if self.guard.is_closed and not await self.guard.try_write():
                return [self._put_back(turn) for turn in turns]
            return [await self._judge(turn, cards.get(turn.payload.card_id)) for turn in turns]
        except DATABASE_FAULTS as error:
            self.rare.warning("数据库不可用，轮询推迟", error=type(error).__name__)
            return [self._put_back(turn) for turn in turns]

    async def _judge(self, turn: Turn, card: Card | None) -> Prepared | Ending:
        if card is None or not card.polling_enabled:
            return REMOVED
        rule = await self._rule_for(card, turn.task_type)
        if card.account_id not in self.config_manager.snapshot.accounts:
            self.rare.warning("没有可用的轮询配置，轮询推迟", task_type=str(turn.task_type))
            return self._put_back(turn)
        if rule is None:
            return REMOVED
        if card.account_id != turn.payload.account_id:
            await self._move(turn, card, rule)
            return REMOVED
        return self._check_account(turn, card, rule)

    async def _rule_for(self, card: Card, task_type: TaskType) -> PollRule | None:
        """Return the card's rule; that it has none is believed only from a configuration just read.

        The leader that claimed the card may know a newer one: this process may have been frozen, or
        the notification is on its way. A card taken out by an old one would be missing for long.
        """
        rule = self.config_manager.rule_for(card, task_type)
        if rule is None:
            await self._refreshes.submit(card)
            rule = self.config_manager.rule_for(card, task_type)
        return rule

    def _check_account(self, turn: Turn, card: Card, rule: PollRule) -> Prepared | Ending:
        snapshot = self.config_manager.snapshot
        account = snapshot.accounts[card.account_id]
        if not account.polling_enabled or account.id in snapshot.unusable:
            return self._put_back(turn)
        resting = self.pauses.remaining(account, snapshot.type_pauses.get((account.id, turn.task_type)))
        if resting is not None:
            return put_back(turn.started.now_ms, min(resting, self.settings.max_pause))
        if self.gateway is None:
            self.rare.warning("网关未配置，轮询推迟", task_type=str(turn.task_type))
            return self._put_back(turn)
        return Prepared(card, account, rule, self.gateway)

    def _put_back(self, turn: Turn) -> Ending:
        return put_back(turn.started.now_ms, self.settings.put_back)

    async def _move(self, turn: Turn, card: Card, rule: PollRule) -> None:
        """Let a card that changed its account wait in the shard of its new one."""
        due = first_due_of(card, turn.task_type, rule, turn.started.now_ms, self.settings)
        await self.queue_manager.add_many(turn.task_type, card.account_id, [(card.id, due)])


def _loading_batcher(pool: Pool) -> MicroBatcher[int, Card | None]:
    """Return a batcher that loads live cards by id; None stands for one that is not there."""

    async def load(card_ids: Sequence[int]) -> Sequence[Card | None]:
        cards = await load_cards(pool, card_ids)
        return [cards.get(card_id) for card_id in card_ids]

    return MicroBatcher(load, name="polling_load")


def _refreshing_batcher(config_manager: PollingConfigManager) -> MicroBatcher[Card, None]:
    """Return a batcher that reads the configuration once for all cards that turned out to have no rule."""

    async def refresh(cards: Sequence[Card]) -> Sequence[None]:
        await config_manager.refresh()
        return [None] * len(cards)

    return MicroBatcher(refresh, name="polling_refresh")
