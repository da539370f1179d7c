"""Tasks about single cards, handed to whichever worker is free."""

import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from junhong_cmp.asynq.client import Client
from junhong_cmp.asynq.task import EnqueueOptions, EnqueueStatus, Task
from junhong_cmp.polling.card_payload import CardPayload, Order
from junhong_cmp.polling.tasks import CRON_QUEUE, TaskType

_TIMEOUT: Final = timedelta(seconds=90)
_SAME_WITHIN_S: Final = 300
_SENT_WITHIN_S: Final = 3600


class CardTasks:
    """Card tasks are enqueued once a card and a few minutes, however many find a reason for one.

    The id changes with time, so that a task which ended badly never stands in the way of later ones.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def protect(self, card_ids: Iterable[int]) -> int:
        """Have the rules decide about the cards; return how many tasks that made."""
        period = int(time.time()) // _SAME_WITHIN_S
        items = [
            (
                Task(TaskType.POLLING_PROTECT, CardPayload(card_id).encode()),
                _options(f"{TaskType.POLLING_PROTECT}:{card_id}:{period}"),
            )
            for card_id in card_ids
        ]
        results = await self._client.enqueue_many(items) if items else []
        return sum(result.status is EnqueueStatus.ENQUEUED for result in results)

    async def evaluate(self, card_ids: Iterable[int]) -> None:
        """Have the cards' usage held against limits that have just changed; every change is heard."""
        options = EnqueueOptions(queue=CRON_QUEUE, max_retry=3, timeout=_TIMEOUT)
        items = [
            (Task(TaskType.POLLING_PACKAGE, CardPayload(card_id).encode()), options) for card_id in card_ids
        ]
        if items:
            await self._client.enqueue_many(items)

    async def send(self, operation_id: int, card_id: int, sends: int) -> None:
        """Have a placed operation sent that the carrier has not seen yet."""
        period = int(time.time()) // _SENT_WITHIN_S
        task_id = f"{TaskType.POLLING_PROTECT}:{card_id}:operation:{operation_id}:{sends}:{period}"
        task = Task(TaskType.POLLING_PROTECT, CardPayload(card_id).encode())
        await self._client.enqueue_many([(task, _options(task_id))])

    async def order(self, card_id: int, order: Order) -> None:
        """Hand an order in; the same one twice is one."""
        task = Task(TaskType.POLLING_PROTECT, CardPayload(card_id, order).encode())
        task_id = f"{TaskType.POLLING_PROTECT}:{card_id}:{order.request_id}"
        await self._client.enqueue_many([(task, _options(task_id))])


def _options(task_id: str) -> EnqueueOptions:
    return EnqueueOptions(queue=CRON_QUEUE, max_retry=3, timeout=_TIMEOUT, task_id=task_id)
