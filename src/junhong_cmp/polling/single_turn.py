"""One poll of one card, from its start to its write-back."""

import asyncio
from dataclasses import dataclass
from typing import Any

from junhong_cmp.clock import Clock
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal, Slot
from junhong_cmp.polling.endings import TurnEndings
from junhong_cmp.polling.gateway_account import card_ref, gateway_account
from junhong_cmp.polling.preparation import Prepared, TurnPreparation
from junhong_cmp.polling.query import PollQuery
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.tasks import PollPayload, TaskType
from junhong_cmp.polling.turn import Ending, Turn


@dataclass(slots=True, kw_only=True)
class SingleTurn:
    """A single turn polls one card; many at once gather their steps into common round trips."""

    queue_manager: PollingQueueManager
    preparation: TurnPreparation
    concurrency: AccountConcurrency
    endings: TurnEndings
    clock: Clock

    async def run(self, payload: PollPayload, query: PollQuery[Any]) -> None:
        """Poll the card, if its claim still holds."""
        turn = await self._start(payload, query.task_type)
        if turn is None:
            self.endings.count_superseded(query.task_type, payload.account_id)
            return
        prepared = await self.preparation.prepare(turn)
        ending = (
            await self.ask_and_keep(turn, prepared, query) if isinstance(prepared, Prepared) else prepared
        )
        await self._finish(turn, ending)

    async def ask_and_keep(self, turn: Turn, prepared: Prepared, query: PollQuery[Any]) -> Ending:
        """Ask the carrier within the account's limits, commit the answer, and tell how the turn ends."""
        slot = await self.concurrency.acquire(prepared.account, turn.task_type, prepared.card.id)
        if isinstance(slot, Refusal):
            return await self.endings.refused(turn, prepared, slot)
        try:
            answer = await self._ask(slot, query, prepared)
            recorded = await query.commit(prepared.card, answer, self.clock.now())
        except Exception as error:  # noqa: BLE001 - told apart and recorded there; one bad card stops no other
            return await self.endings.failed(turn, prepared, error)
        return await self.endings.recorded(turn, prepared, recorded)

    async def _start(self, payload: PollPayload, task_type: TaskType) -> Turn | None:
        account_id, card_id = payload.account_id, payload.card_id
        shard = self.queue_manager.shard(task_type, account_id, card_id)
        started = await self.queue_manager.start(shard, card_id, payload.claim)
        if started is None:
            return None
        return Turn(task_type, payload, shard, started, self.clock.monotonic())

    async def _finish(self, turn: Turn, ending: Ending) -> None:
        card_id, claim = turn.payload.card_id, turn.started.claim
        if ending.next_due is None:
            kept = await self.queue_manager.remove_claimed(turn.shard, card_id, claim)
        else:
            kept = await self.queue_manager.write_back(turn.shard, card_id, claim, ending.next_due)
        self.endings.count(turn, ending, kept=kept)

    async def _ask(self, slot: Slot, query: PollQuery[Any], prepared: Prepared) -> Any:
        card = prepared.card
        try:
            if slot.wait_s > 0:
                await asyncio.sleep(slot.wait_s)
                self.endings.pauses.check(prepared.account)
            return await query.ask(
                prepared.gateway,
                gateway_account(prepared.account),
                card_ref(card),
            )
        finally:
            self.concurrency.release_soon((slot,))
