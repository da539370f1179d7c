"""State of a card at its carrier."""

from datetime import datetime

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card, CardStatus
from junhong_cmp.cards.observations import Recorded, StatusWrite
from junhong_cmp.cards.records import record_status
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayClient, StatusAnswer
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.tasks import TaskType


class CardstatusHandler:
    """A cardstatus handler polls the card's state; a raw code nobody knows is kept beside ``unknown``."""

    task_type = TaskType.POLLING_CARDSTATUS

    def __init__(self, base: PollingBase) -> None:
        self._base = base
        self._writes = recording_batcher(base.pool, record_status, "polling_cardstatus")

    async def process_task(self, task: ProcessingTask) -> None:
        """Take one claimed card through its turn."""
        await self._base.turn(task, self)

    async def close(self) -> None:
        """Finish the batch under way."""
        await self._writes.close()

    async def ask(self, gateway: GatewayClient, account: GatewayAccount, card: CardRef) -> StatusAnswer:
        """Ask for the card's state."""
        return await gateway.query_status(account, card)

    async def commit(self, card: Card, answer: StatusAnswer, observed_at: datetime) -> Recorded:
        """Record the state, with history when it changed."""
        return await self._writes.submit(
            StatusWrite(
                card_id=card.id,
                account_id=card.account_id,
                raw=answer.raw,
                status=CardStatus(answer.status),
                observed_at=observed_at,
            )
        )
