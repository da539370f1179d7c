"""One poll of several cards of an account in one call: every step is made once for all of them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from junhong_cmp.asynq.outages import FAULTS
from junhong_cmp.clock import Clock
from junhong_cmp.gateway.errors import BadRequest, BadResponse, GatewayError, NotOffered
from junhong_cmp.polling.batch_payload import BatchPayload
from junhong_cmp.polling.concurrency import AccountConcurrency, Refusal, Slot
from junhong_cmp.polling.endings import TurnEndings
from junhong_cmp.polling.gateway_account import card_ref, gateway_account
from junhong_cmp.polling.preparation import Prepared, TurnPreparation
from junhong_cmp.polling.query import PollQuery
from junhong_cmp.polling.queue_manager import PollingQueueManager
from junhong_cmp.polling.shard_scripts import Started
from junhong_cmp.polling.single_turn import SingleTurn
from junhong_cmp.polling.tasks import TaskType
from junhong_cmp.polling.turn import Ending, Turn

log = structlog.stdlib.get_logger(__name__)


class _Asked(NamedTuple):
    """A card of the batch with nothing in its way but the account's limits."""

    turn: Turn
    prepared: Prepared


_Ended = tuple[Turn, Ending]


@dataclass(slots=True, kw_only=True)
class BatchTurn:
    """A batch turn polls the cards of one task; each drops out by itself and ends in its own way.

    What concerns a card alone (gone, switched off, claimed by somebody else, unknown to the carrier) leaves
    the others where they are; what concerns the account puts all of them back. If the carrier refuses the
    batch as such, its cards are asked about one by one.
    """

    queue_manager: PollingQueueManager
    preparation: TurnPreparation
    concurrency: AccountConcurrency
    endings: TurnEndings
    single: SingleTurn
    clock: Clock

    async def run(self, payload: BatchPayload, query: PollQuery[Any]) -> None:
        """Poll those of the cards whose claims still hold."""
        turns = await self._start(payload, query.task_type)
        if not turns:
            return
        asked: list[_Asked] = []
        ended: list[_Ended] = []
        for turn, prepared in zip(turns, await self.preparation.prepare_all(turns), strict=True):
            if isinstance(prepared, Prepared):
                asked.append(_Asked(turn, prepared))
            else:
                ended.append((turn, prepared))
        if asked:
            ended += await self._poll(asked, query)
        await self._finish(ended)

    async def _start(self, payload: BatchPayload, task_type: TaskType) -> list[Turn]:
        account_id = payload.account_id
        cards = [
            (self.queue_manager.shard(task_type, account_id, card.card_id), card.card_id, card.claim)
            for card in payload.cards
        ]
        outcomes = await self.queue_manager.batches.start_all(cards)
        began = self.clock.monotonic()
        turns: list[Turn] = []
        for card, (shard, _, _), started in zip(payload.cards, cards, outcomes, strict=True):
            if isinstance(started, Started):
                turns.append(Turn(task_type, card, shard, started, began))
            elif started is None:
                self.endings.count_superseded(task_type, account_id)
        faults = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if faults and not turns:  # the claims run out and the cards are due again
            raise faults[0]
        return turns

    async def _poll(self, asked: Sequence[_Asked], query: PollQuery[Any]) -> list[_Ended]:
        prepared = asked[0].prepared
        most = prepared.gateway.batch_size(gateway_account(prepared.account), query.call)
        if most <= 1:
            return await self._one_by_one(asked, query)
        ended: list[_Ended] = []
        for start in range(0, len(asked), most):
            ended += await self._call(asked[start : start + most], query)
        return ended

    async def _call(self, asked: Sequence[_Asked], query: PollQuery[Any]) -> list[_Ended]:
        account = asked[0].prepared.account
        admissions = await self.concurrency.acquire_batch(
            account, query.task_type, [prepared.card.id for _, prepared in asked]
        )
        slots: list[Slot] = []
        admitted: list[_Asked] = []
        ended: list[_Ended] = []
        for card, admission in zip(asked, admissions, strict=True):
            if isinstance(admission, Refusal):
                ended.append((card.turn, await self.endings.refused(card.turn, card.prepared, admission)))
            else:
                slots.append(admission)
                admitted.append(card)
        if not admitted:
            return ended
        try:
            answers = await self._ask(slots, query, admitted)
        except (BadRequest, NotOffered) as error:
            log.warning(
                "批量查询被拒绝，改为逐卡查询", account=account.code, cards=len(admitted), error=str(error)
            )
            await self.concurrency.release(slots[0])  # returns when those before it are given back as well
            return ended + await self._one_by_one(admitted, query)
        except Exception as error:  # noqa: BLE001 - told apart and recorded for each card
            return ended + await self._end_all(admitted, dict.fromkeys(_ids(admitted), error))
        return ended + await self._keep(admitted, answers, query)

    async def _ask(
        self, slots: Sequence[Slot], query: PollQuery[Any], admitted: Sequence[_Asked]
    ) -> Mapping[int, Any | GatewayError]:
        prepared = admitted[0].prepared
        cards = [card_ref(asked.prepared.card) for asked in admitted]
        try:
            if slots[0].wait_s > 0:
                await asyncio.sleep(slots[0].wait_s)
                self.endings.pauses.check(prepared.account)
            return await query.ask_batch(prepared.gateway, gateway_account(prepared.account), cards)
        finally:
            self.concurrency.release_soon(slots)

    async def _keep(
        self, admitted: Sequence[_Asked], answers: Mapping[int, Any], query: PollQuery[Any]
    ) -> list[_Ended]:
        """Commit the answers together, and end each card by its own."""
        outcomes: dict[int, Any] = {
            card_id: answers.get(card_id, BadResponse("批量应答中没有此卡")) for card_id in _ids(admitted)
        }
        answered = [
            (asked.prepared.card, outcomes[asked.prepared.card.id])
            for asked in admitted
            if not isinstance(outcomes[asked.prepared.card.id], GatewayError)
        ]
        recorded = await query.commit_batch(answered, self.clock.now())
        outcomes |= {card.id: outcome for (card, _), outcome in zip(answered, recorded, strict=True)}
        return await self._end_all(admitted, outcomes)

    async def _end_all(self, admitted: Sequence[_Asked], outcomes: Mapping[int, Any]) -> list[_Ended]:
        """End each card by what was recorded of it, or by the error it met."""
        ended: list[_Ended] = []
        open_ends: list[tuple[Turn, asyncio.Task[Ending]]] = []
        async with asyncio.TaskGroup() as group:
            for turn, prepared in admitted:
                outcome = outcomes[prepared.card.id]
                if isinstance(outcome, Exception):
                    task = group.create_task(self.endings.failed(turn, prepared, outcome))
                    open_ends.append((turn, task))
                elif (settled := self.endings.settled(turn, prepared, outcome)) is not None:
                    ended.append((turn, settled))
                else:
                    task = group.create_task(self.endings.recorded(turn, prepared, outcome))
                    open_ends.append((turn, task))
        return ended + [(turn, task.result()) for turn, task in open_ends]

    async def _one_by_one(self, asked: Sequence[_Asked], query: PollQuery[Any]) -> list[_Ended]:
        endings = await asyncio.gather(
            *(self.single.ask_and_keep(turn, prepared, query) for turn, prepared in asked),
            return_exceptions=True,  # what fails for one card keeps no other from its end
        )
        ended: list[_Ended] = []
        for (turn, _), ending in zip(asked, endings, strict=True):
            if isinstance(ending, Ending):
                ended.append((turn, ending))
            elif not isinstance(ending, FAULTS):  # of Redis: the claim runs out and the card is due again
                raise ending
        return ended

    async def _finish(self, ended: Sequence[_Ended]) -> None:
        """Write the cards back, or take them out, and count them."""
        waiting = [(turn, ending) for turn, ending in ended if ending.next_due is not None]
        leaving = [(turn, ending) for turn, ending in ended if ending.next_due is None]
        batches = self.queue_manager.batches
        written = await batches.write_back_all(
            [
                (turn.shard, turn.payload.card_id, turn.started.claim, ending.next_due)
                for turn, ending in waiting
                if ending.next_due is not None
            ]
        )
        removed = await batches.remove_all(
            [(turn.shard, turn.payload.card_id, turn.started.claim) for turn, _ in leaving]
        )
        for (turn, ending), kept in zip([*waiting, *leaving], [*written, *removed], strict=True):
            if not isinstance(kept, Exception):
                self.endings.count(turn, ending, kept=kept)
        for kept in (*written, *removed):
            if isinstance(kept, Exception):  # Redis, or one shard of it: those claims run out
                raise kept


def _ids(asked: Sequence[_Asked]) -> list[int]:
    return [prepared.card.id for _, prepared in asked]
