"""Real-name state of a card whose holder must be verified."""

from datetime import datetime

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card, RealNameStatus
from junhong_cmp.cards.observations import RealNameWrite, Recorded
from junhong_cmp.cards.records import record_realname
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayClient, RealNameAnswer
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.tasks import TaskType


class RealnameHandler:
    """A realname handler polls whether the holder is verified, where that is required.

    Cards that need no verification wait in no shard of this type; verified ones are asked about
    seldom, since a carrier can clear the state. Both are decided in ``polling.eligibility``.
    """

    task_type = TaskType.POLLING_REALNAME

    def __init__(self, base: PollingBase) -> None:
        self._base = base
        self._writes = recording_batcher(base.pool, record_realname, "polling_realname")

    async def process_task(self, task: ProcessingTask) -> None:
        """Take one claimed card through its turn."""
        await self._base.turn(task, self)

    async def close(self) -> None:
        """Finish the batch under way."""
        await self._writes.close()

    async def ask(self, gateway: GatewayClient, account: GatewayAccount, card: CardRef) -> RealNameAnswer:
        """Ask for the card's real-name state."""
        return await gateway.query_realname(account, card)

    async def commit(self, card: Card, answer: RealNameAnswer, observed_at: datetime) -> Recorded:
        """Record the real-name state."""
        return await self._writes.submit(
            RealNameWrite(
                card_id=card.id,
                account_id=card.account_id,
                status=RealNameStatus(answer.status),
                observed_at=observed_at,
            )
        )
