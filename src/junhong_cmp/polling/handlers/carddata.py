"""Data usage of a card: a reading of the month so far."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.observations import Recorded, UsageWrite
from junhong_cmp.cards.usage_records import record_usage
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayClient, UsageAnswer
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.package_watch import PackageWatch
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.tasks import TaskType


class CarddataHandler:
    """A carddata handler polls usage; the reading counts for the cycle of its own time."""

    task_type = TaskType.POLLING_CARDDATA
    call = GatewayCall.USAGE

    def __init__(self, base: PollingBase, watch: PackageWatch | None = None) -> None:
        self._base = base
        self._watch = watch
        self._writes = recording_batcher(base.pool, record_usage, "polling_carddata")

    async def process_task(self, task: ProcessingTask) -> None:
        """Take one claimed card through its turn."""
        await self._base.turn(task, self)

    async def close(self) -> None:
        """Finish the batch under way."""
        await self._writes.close()

    async def ask(self, gateway: GatewayClient, account: GatewayAccount, card: CardRef) -> UsageAnswer:
        """Ask for the card's usage in the carrier's current cycle."""
        return await gateway.query_usage(account, card)

    async def ask_batch(
        self, gateway: GatewayClient, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, UsageAnswer | GatewayError]:
        """Ask the same about several cards in one call."""
        return await gateway.query_usage_batch(account, cards)

    async def commit(self, card: Card, answer: UsageAnswer, observed_at: datetime) -> Recorded:
        """Apply the reading to the card and its totals."""
        recorded = await self._writes.submit(_write(card, answer, observed_at))
        if self._watch is not None:
            await self._watch.noticed([(card, recorded)])
        return recorded

    async def commit_batch(
        self, answers: Sequence[tuple[Card, UsageAnswer]], observed_at: datetime
    ) -> list[Recorded | Exception]:
        """Do the same for several cards; one that fails fails alone."""
        writes = [_write(card, answer, observed_at) for card, answer in answers]
        recorded = await self._writes.submit_many(writes)
        if self._watch is not None:
            await self._watch.noticed(
                (card, result)
                for (card, _), result in zip(answers, recorded, strict=True)
                if isinstance(result, Recorded)
            )
        return recorded


def _write(card: Card, answer: UsageAnswer, observed_at: datetime) -> UsageWrite:
    return UsageWrite(
        card_id=card.id,
        account_id=card.account_id,
        reading_kb=answer.used_kb,
        reading_at=answer.reading_at,
        observed_at=observed_at,
    )
