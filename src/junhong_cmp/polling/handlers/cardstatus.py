"""State of a card at its carrier."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card, CardStatus
from junhong_cmp.cards.observations import Recorded, StatusWrite
from junhong_cmp.cards.records import record_status
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayClient, StatusAnswer
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.tasks import TaskType


class CardstatusHandler:
    """A cardstatus handler polls the card's state; a raw code nobody knows is kept beside ``unknown``."""

    task_type = TaskType.POLLING_CARDSTATUS
    call = GatewayCall.STATUS

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

    async def ask_batch(
        self, gateway: GatewayClient, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, StatusAnswer | GatewayError]:
        """Ask the same about several cards in one call."""
        return await gateway.query_status_batch(account, cards)

    async def commit(self, card: Card, answer: StatusAnswer, observed_at: datetime) -> Recorded:
        """Record the state, with history when it changed."""
        return await self._writes.submit(_write(card, answer, observed_at))

    async def commit_batch(
        self, answers: Sequence[tuple[Card, StatusAnswer]], observed_at: datetime
    ) -> list[Recorded | Exception]:
        """Do the same for several cards; one that fails fails alone."""
        return await self._writes.submit_many([_write(card, answer, observed_at) for card, answer in answers])


def _write(card: Card, answer: StatusAnswer, observed_at: datetime) -> StatusWrite:
    return StatusWrite(
        card_id=card.id,
        account_id=card.account_id,
        raw=answer.raw,
        status=CardStatus(answer.status),
        observed_at=observed_at,
    )
