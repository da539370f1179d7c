"""Real-name state of a card whose holder must be verified."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card, RealNameStatus
from junhong_cmp.cards.observations import RealNameWrite, Recorded
from junhong_cmp.cards.records import record_realname
from junhong_cmp.gateway.client import CardRef, GatewayAccount, GatewayCall, GatewayClient, RealNameAnswer
from junhong_cmp.gateway.errors import GatewayError
from junhong_cmp.polling.base import PollingBase
from junhong_cmp.polling.query import recording_batcher
from junhong_cmp.polling.tasks import TaskType


class RealnameHandler:
    """A realname handler polls whether the holder is verified, where that is required.

    Cards that need no verification wait in no shard of this type; verified ones are asked about
    seldom, since a carrier can clear the state. Both are decided in ``polling.eligibility``.
    """

    task_type = TaskType.POLLING_REALNAME
    call = GatewayCall.REALNAME

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

    async def ask_batch(
        self, gateway: GatewayClient, account: GatewayAccount, cards: Sequence[CardRef]
    ) -> Mapping[int, RealNameAnswer | GatewayError]:
        """Ask the same about several cards in one call."""
        return await gateway.query_realname_batch(account, cards)

    async def commit(self, card: Card, answer: RealNameAnswer, observed_at: datetime) -> Recorded:
        """Record the real-name state."""
        return await self._writes.submit(_write(card, answer, observed_at))

    async def commit_batch(
        self, answers: Sequence[tuple[Card, RealNameAnswer]], observed_at: datetime
    ) -> list[Recorded | Exception]:
        """Do the same for several cards; one that fails fails alone."""
        return await self._writes.submit_many([_write(card, answer, observed_at) for card, answer in answers])


def _write(card: Card, answer: RealNameAnswer, observed_at: datetime) -> RealNameWrite:
    return RealNameWrite(
        card_id=card.id,
        account_id=card.account_id,
        status=RealNameStatus(answer.status),
        observed_at=observed_at,
    )
