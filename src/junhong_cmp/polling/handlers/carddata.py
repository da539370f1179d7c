"""Data usage of a card: a reading of the month so far."""

from datetime import datetime

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card
from junhong_cmp.cards.observations import Recorded, UsageWrite
from junhong_cmp.cards.usage_records import record_usage
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayClient, UsageAnswer
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.tasks import TaskType


class CarddataHandler:
    """A carddata handler polls usage; the reading counts for the cycle of its own time."""

    task_type = TaskType.POLLING_CARDDATA

    def __init__(self, base: PollingBase) -> None:
        self._base = base
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

    async def commit(self, card: Card, answer: UsageAnswer, observed_at: datetime) -> Recorded:
        """Apply the reading to the card and its totals."""
        return await self._writes.submit(
            UsageWrite(
                card_id=card.id,
                account_id=card.account_id,
                reading_kb=answer.used_kb,
                reading_at=answer.reading_at,
                observed_at=observed_at,
            )
        )
